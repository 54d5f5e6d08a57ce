"""Fading of a link: gains, and the rates that follow from them."""

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from scipy import special, stats

from fedsim.network import Fading, ModulationAndCoding, Nakagami, Rayleigh, Rician
from fedsim.network.radio.channel import Channel
from fedsim.streams import Streams
from validation import PUBLISHED, Row, mean_of, share_of

K: Final = 10**0.7
FADING: Final[dict[str, tuple[Fading, Any]]] = {
    "Rayleigh": (Rayleigh(), stats.expon()),
    "Rician K = 7 dB": (Rician(k_db=7.0), stats.ncx2(2, 2 * K, scale=1 / (2 * (1 + K)))),
    "Nakagami m = 0.5": (Nakagami(m=0.5), stats.gamma(0.5, scale=2.0)),
    "Nakagami m = 3": (Nakagami(m=3.0), stats.gamma(3.0, scale=1 / 3)),
}
"""Laws of fading, and SciPy's distributions of their gains."""


def capacity(snr: float) -> float:
    """Return ``e^(1/snr) E1(1/snr) / ln 2``, the ergodic capacity of Rayleigh fading; U(1, 1, x) is e^x E1(x)."""
    return float(special.hyperu(1.0, 1.0, 1 / snr)) / math.log(2)


def fading(effort: float) -> Iterator[Row]:
    """Fading, capacity in bit/s/Hz and outage: gains (Kolmogorov-Smirnov), mean rates, and how often they fall short.

    The goodput of a table of schemes without block errors steps from one efficiency to the next at its thresholds.
    """
    block = np.arange(round(400_000 * effort))
    for number, (name, (law, gains)) in enumerate(FADING.items()):
        gain = law.gain_quantile(Streams(3).uniform("fading", number, block))
        likely = float(stats.kstest(gain, gains.cdf).pvalue)  # shown as a standard normal number beside 0
        yield Row(f"{name}: Kolmogorov-Smirnov", float(stats.norm.isf(likely)), 0.0, 1.0)
    for snr_db in (0, 10, 20):
        snr = 10 ** (snr_db / 10)
        rate = Channel(np.array([snr]), 1.0, Rayleigh(), "fading", Streams(10 + snr_db)).rate_bps(0, block)
        yield mean_of(f"Rayleigh ergodic capacity at {snr_db} dB", rate, capacity(snr))
    for name, (law, gains) in list(FADING.items())[:2]:
        rate = Channel(np.array([10.0]), 1.0, law, "fading", Streams(5)).rate_bps(0, block)
        for level in (1.0, 2.0):
            theory = float(gains.cdf((2**level - 1) / 10))
            yield share_of(f"{name.split()[0]} outage at 10 dB, P(rate < {level:g})", rate < level, theory)
    schemes = ModulationAndCoding(overhead=0.0, steepness_per_db=200.0, gap_db=2.0)
    rate = Channel(np.array([10.0]), 1.0, Rayleigh(), "fading", Streams(15), schemes).rate_bps(0, block)
    efficiency = np.array([bits * rate / 1024 for bits, rate in PUBLISHED["cqi_64qam"]])
    reached = np.exp(-(2**efficiency - 1) * 10**0.2 / 10.0)
    theory = float(efficiency @ -np.diff(reached, append=0.0))
    yield mean_of("CQI (64qam) over Rayleigh at 10 dB, mean", rate, theory)
    yield share_of("CQI (64qam) over Rayleigh at 10 dB, outage", rate == 0.0, 1 - float(reached[0]))
