"""What is drawn of a radio link: lines of sight, shadowing and fading, and rates and transfers over them."""

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from scipy import integrate, special, stats

from fedsim.network import (
    PATH_LOSSES,
    Cell,
    CorrelatedShadowing,
    Fading,
    ModulationAndCoding,
    Nakagami,
    Rayleigh,
    Rician,
)
from fedsim.network.radio.channel import Channel
from fedsim.streams import Streams
from validation import PUBLISHED, Row, mean_of, share_of, spread_of

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


def by_hand(formula: str) -> float:
    """Return the value of a formula of `published.toml`."""
    return float(eval(formula, {"__builtins__": {}}, vars(math)))  # noqa: S307 - of this folder


def path_loss(_effort: float) -> Iterator[Row]:
    """Path loss in dB: each scenario of TR 38.901 at given distances."""
    for one in PUBLISHED["path_loss"]:
        law = PATH_LOSSES.make(one["law"])
        for state, loss_db in (("", law.los_loss_db), ("N", law.nlos_loss_db)):
            for distance_m, formula in one[f"{state}LOS"]:
                title = f"{one['name']} {state}LOS {distance_m:g} m"
                yield Row(title, float(loss_db(float(distance_m))), by_hand(formula))


def links(effort: float) -> Iterator[Row]:
    """Lines of sight, and shadowing in dB: shares, and deviations with and without one, of TR 38.901."""
    for number, one in enumerate(PUBLISHED["path_loss"]):
        law, distance_m = PATH_LOSSES.make(one["law"]), float(one["los"][0])
        drawn = law.draw(np.full(round(200_000 * effort), distance_m), 0, Streams(100 + number))
        yield share_of(f"{one['name']} LOS share at {distance_m:g} m", drawn.los, by_hand(one["los"][1]))
        place = np.tile([distance_m, 0.0], (round(100_000 * effort), 1))
        _, loss = Cell(path_loss=law).losses(place, np.zeros((1, 2)), Streams(200 + number))
        los = law.draw(place[:, 0], 0, Streams(200 + number)).los
        for state, there, sigma_db in zip(("LOS", "NLOS"), (los, ~los), one["sigma_db"], strict=True):
            yield spread_of(f"{one['name']} {state} sigma in dB", loss[there, 0], sigma_db)


def correlation(effort: float) -> Iterator[Row]:
    """Shadowing over distance and sites: products at two places or towards two sites, of variance 1, over seeds."""
    apart_m = np.array([0.0, 10.0, 50.0, 120.0])
    place = np.column_stack([1000.0 + 0.6 * apart_m, -300.0 + 0.8 * apart_m])
    for method in ("field", "exact"):
        law = CorrelatedShadowing.model_validate({"decorrelation_m": 50.0, "site_correlation": 0.5, "method": method})
        value = np.stack([law.standard(place, 2, Streams(seed)) for seed in range(round(10_000 * effort))])
        for i in (1, 2, 3):
            name = f"correlation over {apart_m[i]:g} m ({method})"
            yield mean_of(name, value[:, 0, 0] * value[:, i, 0], math.exp(-apart_m[i] / 50))
        yield mean_of(f"correlation between sites ({method})", value[:, 0, 0] * value[:, 0, 1], 0.5)


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


def transfer(effort: float) -> Iterator[Row]:
    """Transfer, in blocks: durations of transfers as long as 10^4 blocks of mean rate, in blocks.

    They begin with a block, and end within one that is met in proportion to its rate: by Wald's identity the mean is
    N + cv^2 / 2 with the coefficient of variation cv of the rate, and the variance about N cv^2.
    """
    snr, blocks, clients = 10.0, 10_000, round(800 * effort)
    square = integrate.quad(lambda gain: math.log2(1 + snr * gain) ** 2 * math.exp(-gain), 0, 60, limit=200)[0]
    variation = square / capacity(snr) ** 2 - 1
    channel = Channel(np.full(clients, snr), 1.0, Rayleigh(coherence_s=1.0), "fading", Streams(6))
    took = channel.transfer_s(np.arange(clients), np.zeros(clients), blocks * capacity(snr))
    yield mean_of("transfer over 10^4 Rayleigh blocks, mean", took, blocks + variation / 2)
    yield spread_of("transfer over 10^4 Rayleigh blocks, deviation", took, math.sqrt(blocks * variation))
