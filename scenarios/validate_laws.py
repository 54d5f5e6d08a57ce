"""Does each law do what theory says? Every law of network and devices beside a closed form or a published table.

    python scenarios/validate_laws.py [--quick]

Path losses are those of 3GPP TR 38.901 worked out once more by hand; fading, capacities, queues and stragglers have
closed forms; the CQI tables are typed from the standard; comings and goings are compared with what is published of a
sample. The last column is the difference in standard errors, 0 where nothing is drawn; the status is 1 if any exceeds
4.5. For a Kolmogorov-Smirnov test the columns are the statistic, its mean if the law holds, and the p-value as a
standard normal number. ``--quick`` takes a tenth of the samples.
"""

import sys
import time
from collections.abc import Callable, Iterator

from study_scripts import sizes
from validation import Row, bands, capability, cells, clock, graphs, paths, presence, radio, sionna_laws

LIMIT = 4.5  # standard errors: one table of 160 drawn rows in 1,000 goes beyond by chance
GROUPS: list[Callable[[float], Iterator[Row]]] = [
    *(radio.path_loss, radio.line_of_sight, radio.shadowing_sigma, radio.shadowing_correlation),
    *(cells.walls, bands.indoors, radio.fading, radio.rates, cells.coding, bands.ceilings),
    *(bands.selectivity, sionna_laws.channels, radio.transfer, cells.max_relative_snr),
    *(cells.proportional_fair, cells.shares, cells.multicast, clock.queues, clock.shares, graphs.access),
    *(clock.bursts, paths.access, paths.transport, paths.server, paths.contention, paths.lora),
    *(paths.satellites, presence.shares, presence.flash, capability.devices, clock.stragglers),
]


def main() -> None:
    effort = 0.1 if sizes(__file__, __doc__, writes=False, quick=False).quick else 1.0
    began = time.perf_counter()
    worst, beyond = 0.0, 0
    print(line("law", "simulated", "theory", "std. errors"))
    for group in GROUPS:
        print(f"\n{(group.__doc__ or '').partition(': ')[0]}")
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
