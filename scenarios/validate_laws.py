"""Does each law do what theory says? Every law of network and devices beside a closed form or a published table.

    python scenarios/validate_laws.py [--quick]

Path losses are those of 3GPP TR 38.901 worked out once more by hand; fading, capacities, queues and stragglers have
closed forms; the CQI tables are typed from the standard; comings and goings are compared with what is published of a
sample. The last column is the difference in standard errors, 0 where nothing is drawn; the status is 1 if any exceeds
4.5. For a Kolmogorov-Smirnov test the columns are the statistic, its mean if the law holds, and the p-value as a
standard normal number. ``--quick`` takes a tenth of the samples.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator

from validation import Row, bands, capability, cells, clock, graphs, paths, presence, radio, sionna_laws

LIMIT = 4.5  # standard errors: one table of 160 drawn rows in 1,000 goes beyond by chance
GROUPS: dict[str, Callable[[float], Iterator[Row]]] = {
    "Path loss in dB": radio.path_loss,
    "Line of sight": radio.line_of_sight,
    "Shadowing": radio.shadowing_sigma,
    "Shadowing over distance and sites": radio.shadowing_correlation,
    "Buildings": cells.walls,
    "Indoors": bands.indoors,
    "Fading": radio.fading,
    "Capacity in bit/s/Hz, and outage": radio.capacity,
    "Modulation and coding, in bit/s/Hz": cells.coding,
    "Ceilings in bit/s/Hz, and thresholds": bands.ceilings,
    "Bands that fade in parts": bands.selectivity,
    "Sionna's channels, where it is installed": sionna_laws.channels,
    "Transfer, in blocks": radio.transfer,
    "Max relative SNR": cells.max_relative_snr,
    "Proportional fair": cells.proportional_fair,
    "Shares": cells.shares,
    "Multicast, in bit/s/Hz": cells.multicast,
    "Shared medium, load 0.6": clock.queues,
    "Shared links": clock.shares,
    "Radio access of graphs": graphs.access,
    "Outage bursts": clock.bursts,
    "Access of cells": paths.access,
    "Transport": paths.transport,
    "The server's link": paths.server,
    "Wi-Fi": paths.contention,
    "LoRa": paths.lora,
    "Satellites": paths.satellites,
    "Availability": presence.shares,
    "Availability: generated against published samples": presence.flash,
    "Device capability against published statistics": capability.devices,
    "Stragglers": clock.stragglers,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Laws beside their theory.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    effort = 0.1 if parser.parse_args().quick else 1.0

    began = time.perf_counter()
    worst, beyond = 0.0, 0
    print(line("law", "simulated", "theory", "std. errors"))
    for title, group in GROUPS.items():
        print(f"\n{title}")
        for row in group(effort):
            worst = max(worst, abs(row.errors))
            beyond += not abs(row.errors) <= LIMIT
            errors = f"{row.errors:+.2f}" if row.drawn else f"{row.errors:.0f}"
            print(line(f"  {row.law}", f"{row.simulated:.6g}", f"{row.theory:.6g}", errors))
    took_s = time.perf_counter() - began
    print(f"\n{beyond} rows beyond {LIMIT} standard errors, the largest at {worst:.2f}; {took_s:.1f} s")
    sys.exit(1 if beyond else 0)


def line(law: str, simulated: str, theory: str, errors: str) -> str:
    return f"{law:<70}{simulated:>12}{theory:>12}{errors:>13}"


if __name__ == "__main__":
    main()
