"""What a delay spread costs: rates of fading blocks with and without one, and the table of a band.

    python tests/benchmarks/band_rates.py

prints nanoseconds for the rate of a client in a block, and milliseconds for the table, with Shannon's law and with
modulation and coding; each is the median of five.
"""

import statistics
import time

import numpy as np

from fedsim.network import ModulationAndCoding, Rayleigh, Shannon
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.selectivity import BandRates
from fedsim.network.radio.spectral_efficiency import RateLaw
from fedsim.streams import Streams

CLIENTS, BLOCKS, TIMES = 100, 80, 100
BAND_HZ, SPREAD_S = 10e6, 363e-9


def rate_ns(rate: RateLaw, delay_spread_s: float) -> float:
    """Return the nanoseconds for one rate."""
    snr = np.geomspace(0.1, 1e3, CLIENTS)
    channel = Channel(snr, BAND_HZ, Rayleigh(), "fading", Streams(0), rate, delay_spread_s=delay_spread_s)
    client, block = np.arange(CLIENTS)[:, None], np.arange(BLOCKS)
    channel.rate_bps(client, block)
    began = time.process_time()
    for chunk in range(TIMES):
        channel.rate_bps(client, block + chunk * BLOCKS)
    return (time.process_time() - began) / (TIMES * CLIENTS * BLOCKS) * 1e9


def table_ms(rate: RateLaw) -> float:
    """Return the milliseconds for the table of a band over 40 dB."""
    began = time.process_time()
    BandRates(rate, Rayleigh(), np.geomspace(0.1, 1e3, CLIENTS), BAND_HZ, SPREAD_S)
    return (time.process_time() - began) * 1e3


def main() -> None:
    """Print the costs."""
    table_ms(Shannon())  # draws the taps once
    for name, rate in (("shannon", Shannon()), ("cqi", ModulationAndCoding(table="256qam"))):
        pairs = [(rate_ns(rate, 0.0), rate_ns(rate, SPREAD_S), table_ms(rate)) for _ in range(5)]
        flat, parts, table = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(b / a for a, b, _ in pairs)
        print(f"{name:>8}: flat {flat:.0f} ns, in parts {parts:.0f} ns ({ratio:.2f} times), table {table:.0f} ms")


if __name__ == "__main__":
    main()
