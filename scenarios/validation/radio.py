"""Propagation, fading and transfers over them; formulas of 3GPP TR 38.901 (V16.1.0) are worked out here once more."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import exp, log10, pi

import numpy as np
from scipy import integrate, special, stats

from fedsim.network import (
    Cell,
    CorrelatedShadowing,
    Fading,
    FreeSpace,
    IndoorFactory,
    IndoorOffice,
    LogDistance,
    Nakagami,
    Rayleigh,
    Rician,
    RuralMacro,
    UrbanMacro,
    UrbanMicro,
)
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.tr38901.base import Scenario38901
from fedsim.network.radio.tr38901.penetration import wall_loss_db
from fedsim.streams import Streams
from validation import FloatArray, Row, deviation_of, exact, fit_of, mean_of, share_of

Formula = Callable[[float], float]


@dataclass(frozen=True)
class ByHand:
    """A scenario of TR 38.901 and its rows of tables 7.4.1-1 and 7.4.2-1 with all numbers put in."""

    name: str
    law: Scenario38901
    seen: tuple[tuple[float, float], ...]
    unseen: tuple[tuple[float, float], ...]
    los: tuple[float, float]
    sigma_db: tuple[float, float]


# Squares of the distance between antennas are those of the ground and of the difference in height.
SCENARIOS = (
    ByHand(  # 25 m and 1.5 m: breakpoint 4 * 24 * 0.5 * 2 / 0.3 = 320 m
        "UMa 2 GHz",
        UrbanMacro(carrier_hz=2e9),
        (
            (100.0, 28 + 11 * log10(100**2 + 23.5**2) + 20 * log10(2)),
            (1000.0, 28 + 20 * log10(1000**2 + 23.5**2) + 20 * log10(2) - 9 * log10(320**2 + 23.5**2)),
        ),
        ((500.0, 13.54 + 19.54 * log10(500**2 + 23.5**2) + 20 * log10(2)),),
        (100.0, 0.18 + exp(-100 / 63) * 0.82),
        (4.0, 6.0),
    ),
    ByHand(  # 10 m and 1.5 m: breakpoint 4 * 9 * 0.5 * 3.5 / 0.3 = 210 m
        "UMi 3.5 GHz",
        UrbanMicro(carrier_hz=3.5e9),
        (
            (100.0, 32.4 + 10.5 * log10(100**2 + 8.5**2) + 20 * log10(3.5)),
            (400.0, 32.4 + 20 * log10(400**2 + 8.5**2) + 20 * log10(3.5) - 9.5 * log10(210**2 + 8.5**2)),
        ),
        ((200.0, 17.65 * log10(200**2 + 8.5**2) + 22.4 + 21.3 * log10(3.5)),),
        (60.0, 0.3 + exp(-60 / 36) * 0.7),
        (4.0, 7.82),
    ),
    ByHand(  # 35 m and 1.5 m, roofs 5 m, streets 20 m: breakpoint 2 pi 35 * 1.5 * 0.7 / 0.3 = 245 pi m
        "RMa 0.7 GHz",
        RuralMacro(carrier_hz=0.7e9),
        (
            (
                500.0,
                20 * log10(40 * pi * math.hypot(500, 33.5) * 0.7 / 3)
                + 0.03 * 5**1.72 * log10(math.hypot(500, 33.5))
                - 0.044 * 5**1.72
                + 0.002 * log10(5) * math.hypot(500, 33.5),
            ),
            (
                3000.0,
                20 * log10(40 * pi * 245 * pi * 0.7 / 3)
                + 0.03 * 5**1.72 * log10(245 * pi)
                - 0.044 * 5**1.72
                + 0.002 * log10(5) * 245 * pi
                + 40 * log10(math.hypot(3000, 33.5) / (245 * pi)),
            ),
        ),
        (
            (
                1000.0,
                161.04
                - 7.1 * log10(20)
                + 7.5 * log10(5)
                - (24.37 - 3.7 / 49) * log10(35)
                + (43.42 - 3.1 * log10(35)) * (log10(math.hypot(1000, 33.5)) - 3)
                + 20 * log10(0.7)
                - (3.2 * log10(17.625) ** 2 - 4.97),
            ),
        ),
        (1000.0, exp(-0.99)),
        (6.0, 8.0),
    ),
    ByHand(  # 3 m and 1 m
        "InH mixed 3.5 GHz",
        IndoorOffice(carrier_hz=3.5e9),
        ((20.0, 32.4 + 8.65 * log10(20**2 + 2**2) + 20 * log10(3.5)),),
        ((20.0, 19.15 * log10(20**2 + 2**2) + 17.3 + 24.9 * log10(3.5)),),
        (20.0, 0.32 * exp(-13.5 / 32.6)),
        (3.0, 8.03),
    ),
    ByHand(
        "InH open 28 GHz",
        IndoorOffice(carrier_hz=28e9, office="open"),
        ((60.0, 32.4 + 8.65 * log10(60**2 + 2**2) + 20 * log10(28)),),
        ((60.0, 19.15 * log10(60**2 + 2**2) + 17.3 + 24.9 * log10(28)),),
        (60.0, 0.54 * exp(-11 / 211.7)),
        (3.0, 8.03),
    ),
    ByHand(  # 1.5 m both; r = 0.2, clutter of 10 m
        "InF-SL 3.5 GHz",
        IndoorFactory(carrier_hz=3.5e9, hall="sl", base_height_m=1.5),
        ((50.0, 31.84 + 21.5 * log10(50) + 19 * log10(3.5)),),
        ((50.0, 33 + 25.5 * log10(50) + 20 * log10(3.5)),),
        (50.0, 0.8**5),
        (4.3, 5.7),
    ),
    ByHand(  # r = 0.6, clutter of 2 m
        "InF-DL 3.5 GHz",
        IndoorFactory(carrier_hz=3.5e9, hall="dl", base_height_m=1.5, clutter_density=0.6, clutter_size_m=2.0),
        ((50.0, 31.84 + 21.5 * log10(50) + 19 * log10(3.5)),),
        ((50.0, 18.6 + 35.7 * log10(50) + 20 * log10(3.5)),),
        (3.0, 0.4**1.5),
        (4.3, 7.2),
    ),
    ByHand(  # 8 m and 1.5 m, clutter 4 m high: k = -10 / ln 0.8 * 6.5 / 2.5
        "InF-SH 3.5 GHz",
        IndoorFactory(carrier_hz=3.5e9, hall="sh", clutter_height_m=4.0),
        ((50.0, 31.84 + 10.75 * log10(50**2 + 6.5**2) + 19 * log10(3.5)),),
        ((50.0, 32.4 + 11.5 * log10(50**2 + 6.5**2) + 20 * log10(3.5)),),
        (50.0, 0.8 ** (5 * 2.5 / 6.5)),
        (4.3, 5.9),
    ),
    ByHand(  # clutter 6 m high: k = -2 / ln 0.4 * 6.5 / 4.5
        "InF-DH 3.5 GHz",
        IndoorFactory(carrier_hz=3.5e9, hall="dh", clutter_density=0.6, clutter_size_m=2.0, clutter_height_m=6.0),
        ((50.0, 31.84 + 10.75 * log10(50**2 + 6.5**2) + 19 * log10(3.5)),),
        ((50.0, 33.63 + 10.95 * log10(50**2 + 6.5**2) + 20 * log10(3.5)),),
        (3.0, 0.4 ** (1.5 * 4.5 / 6.5)),
        (4.3, 4.0),
    ),
)


def path_loss(_effort: float) -> Iterator[Row]:
    """Yield the path loss of each law at given distances."""
    yield exact("free space 2.4 GHz, 100 m", _float(FreeSpace(carrier_hz=2.4e9).loss_db(100.0)), _friis_db(2.4e9, 100))
    log_distance = LogDistance(exponent=3.0, reference_loss_db=40.0, reference_distance_m=1.0)
    yield exact("log-distance n = 3, 40 dB at 1 m, 1 km", _float(log_distance.loss_db(1e3)), 130.0)
    for one in SCENARIOS:
        for distance, loss in one.seen:
            yield exact(f"{one.name} LOS {distance:g} m", _float(one.law.los_loss_db(distance)), loss)
        for distance, loss in one.unseen:
            yield exact(f"{one.name} NLOS {distance:g} m", _float(one.law.nlos_loss_db(distance)), loss)
    low = 5 - 10 * log10(0.3 * 10**-0.27 + 0.7 * 10**-1.9)
    high = 5 - 10 * log10(0.7 * 10**-2.405 + 0.3 * 10**-1.9)
    yield exact("outdoor to indoor, low-loss wall 3.5 GHz", wall_loss_db("low", 3.5e9), low)
    yield exact("outdoor to indoor, high-loss wall 3.5 GHz", wall_loss_db("high", 3.5e9), high)


def line_of_sight(effort: float) -> Iterator[Row]:
    """Yield the share of clients with a line of sight."""
    for seed, one in enumerate(SCENARIOS, 100):
        distance, probability = one.los
        drawn = one.law.draw(np.full(round(200_000 * effort), distance), 0, Streams(seed))
        yield share_of(f"{one.name} LOS share at {distance:g} m", drawn.los, probability)


def shadowing_sigma(effort: float) -> Iterator[Row]:
    """Yield the deviation of a cell's losses from the path loss with and without a line of sight."""
    for seed, one in enumerate(SCENARIOS, 200):
        clients, distance = round(100_000 * effort), one.los[0]
        place = np.column_stack([np.full(clients, distance), np.zeros(clients)])
        _, loss = Cell(path_loss=one.law).losses(place, np.zeros((1, 2)), Streams(seed))
        los = one.law.draw(place[:, 0], 0, Streams(seed)).los
        for state, seen, sigma in zip(("LOS", "NLOS"), (los, ~los), one.sigma_db, strict=True):
            centre = _float((one.law.los_loss_db if state == "LOS" else one.law.nlos_loss_db)(distance))
            yield deviation_of(f"{one.name} {state} sigma in dB", loss[seen, 0], centre, sigma)


def shadowing_correlation(effort: float) -> Iterator[Row]:
    """Yield products of shadowings at two places or towards two sites, each with variance 1, over many seeds."""
    apart_m = (0.0, 10.0, 50.0, 120.0)
    place = np.column_stack([1000.0 + 0.6 * np.array(apart_m), -300.0 + 0.8 * np.array(apart_m)])
    for method in ("field", "exact"):
        law = CorrelatedShadowing.model_validate({"decorrelation_m": 50.0, "site_correlation": 0.5, "method": method})
        value = np.stack([law.standard(place, 2, Streams(seed)) for seed in range(round(10_000 * effort))])
        for i in (1, 2, 3):
            name = f"correlation over {apart_m[i]:g} m ({method})"
            yield mean_of(name, value[:, 0, 0] * value[:, i, 0], exp(-apart_m[i] / 50))
        yield mean_of(f"correlation between sites ({method})", value[:, 0, 0] * value[:, 0, 1], 0.5)


def fading(effort: float) -> Iterator[Row]:
    """Yield Kolmogorov-Smirnov statistics of power gains, drawn for one client block by block."""
    block = np.arange(round(400_000 * effort))
    k = 10**0.7
    laws: tuple[tuple[str, Fading, Callable[[FloatArray], FloatArray]], ...] = (
        ("Rayleigh", Rayleigh(), stats.expon().cdf),
        ("Rician K = 7 dB", Rician(k_db=7.0), stats.ncx2(2, 2 * k, scale=1 / (2 * (1 + k))).cdf),
        ("Nakagami m = 0.5", Nakagami(m=0.5), stats.gamma(0.5, scale=2.0).cdf),
        ("Nakagami m = 3", Nakagami(m=3.0), stats.gamma(3.0, scale=1 / 3).cdf),
    )
    for number, (name, law, cdf) in enumerate(laws):
        gain = law.gain_quantile(Streams(3).uniform("fading", number, block))
        yield fit_of(f"{name}: Kolmogorov-Smirnov", gain, cdf)


def capacity(effort: float) -> Iterator[Row]:
    """Yield mean rates over fading, and how often they fall short of a level."""
    block = np.arange(round(400_000 * effort))
    for snr_db in (0, 10, 20):
        snr = 10 ** (snr_db / 10)
        theory = exp(1 / snr) * float(special.exp1(1 / snr)) / math.log(2)
        channel = Channel(np.array([snr]), 1.0, Rayleigh(), "fading", Streams(10 + snr_db))
        yield mean_of(f"Rayleigh ergodic capacity at {snr_db} dB, sampled", channel.rate_bps(0, block), theory)
        yield exact(f"Rayleigh ergodic capacity at {snr_db} dB, expected", channel.ergodic_rate_bps[0], theory)
    k = 10**0.7
    rician = stats.ncx2(2, 2 * k, scale=1 / (2 * (1 + k)))
    for name, law, cdf in (("Rayleigh", Rayleigh(), stats.expon().cdf), ("Rician", Rician(k_db=7.0), rician.cdf)):
        rate = Channel(np.array([10.0]), 1.0, law, "fading", Streams(5)).rate_bps(0, block)
        for level in (1.0, 2.0):
            theory = float(cdf((2**level - 1) / 10))
            yield share_of(f"{name} outage at 10 dB, P(rate < {level:g})", rate < level, theory)


def transfer(effort: float) -> Iterator[Row]:
    """Yield durations of transfers as long as 10^4 blocks of mean rate, in blocks.

    They begin with a block, and end within one that is met in proportion to its rate: by Wald's identity the mean is
    N + cv^2 / 2 with the coefficient of variation cv of the rate, and the variance about N cv^2.
    """
    snr, blocks, clients = 10.0, 10_000, round(800 * effort)
    mean, square = (_moment(snr, power) for power in (1, 2))
    variation = square / mean**2 - 1
    channel = Channel(np.full(clients, snr), 1.0, Rayleigh(coherence_s=1.0), "fading", Streams(6))
    took = channel.transfer_s(np.arange(clients), np.zeros(clients), blocks * mean)
    yield mean_of("transfer over 10^4 Rayleigh blocks, mean", took, blocks + variation / 2)
    deviation = math.sqrt(blocks * variation)
    yield deviation_of("transfer over 10^4 Rayleigh blocks, deviation", took, blocks + variation / 2, deviation)


def _moment(snr: float, power: int) -> float:
    return float(integrate.quad(lambda x: math.log2(1 + snr * x) ** power * exp(-x), 0, 60, epsabs=1e-13, limit=200)[0])


def _friis_db(carrier_hz: float, distance_m: float) -> float:
    return 20 * log10(4 * pi * distance_m * carrier_hz / 299_792_458)


def _float(value: FloatArray) -> float:
    return float(value)
