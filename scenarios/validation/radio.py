"""Propagation, fading and transfers over them; `published.toml` has formulas of 3GPP TR 38.901 worked out once more."""

import math
from collections.abc import Iterator
from math import exp, log10, pi

import numpy as np

from fedsim.network import (
    PATH_LOSSES,
    Cell,
    CorrelatedShadowing,
    FreeSpace,
    LogDistance,
    Rayleigh,
)
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.tr38901.outdoor import wall_loss_db
from fedsim.streams import Streams
from validation import (
    FADING,
    PUBLISHED,
    FloatArray,
    Row,
    by_hand,
    capacity,
    deviation_of,
    exact,
    fit_of,
    mean_of,
    rate_moments,
    share_of,
)

# Name, law and theory of each scenario of TR 38.901.
SCENARIOS = [(one["name"], PATH_LOSSES.make(one["law"]), one) for one in PUBLISHED["path_loss"]]


def path_loss(_effort: float) -> Iterator[Row]:
    """Path loss in dB: each law at given distances."""
    yield exact("free space 2.4 GHz, 100 m", _float(FreeSpace(carrier_hz=2.4e9).loss_db(100.0)), _friis_db(2.4e9, 100))
    log_distance = LogDistance(exponent=3.0, reference_loss_db=40.0, reference_distance_m=1.0)
    yield exact("log-distance n = 3, 40 dB at 1 m, 1 km", _float(log_distance.loss_db(1e3)), 130.0)
    for name, law, one in SCENARIOS:
        for state, loss_db in (("seen", law.los_loss_db), ("unseen", law.nlos_loss_db)):
            for distance, loss in one[state]:
                title = f"{name} {'' if state == 'seen' else 'N'}LOS {distance:g} m"
                yield exact(title, _float(loss_db(float(distance))), by_hand(loss))
    low = 5 - 10 * log10(0.3 * 10**-0.27 + 0.7 * 10**-1.9)
    high = 5 - 10 * log10(0.7 * 10**-2.405 + 0.3 * 10**-1.9)
    yield exact("outdoor to indoor, low-loss wall 3.5 GHz", wall_loss_db("low", 3.5e9), low)
    yield exact("outdoor to indoor, high-loss wall 3.5 GHz", wall_loss_db("high", 3.5e9), high)


def line_of_sight(effort: float) -> Iterator[Row]:
    """Line of sight: the share of clients that have one."""
    for seed, (name, law, one) in enumerate(SCENARIOS, 100):
        distance, probability = one["los"]
        drawn = law.draw(np.full(round(200_000 * effort), float(distance)), 0, Streams(seed))
        yield share_of(f"{name} LOS share at {distance:g} m", drawn.los, by_hand(probability))


def shadowing_sigma(effort: float) -> Iterator[Row]:
    """Shadowing: the deviation of a cell's losses from the path loss with and without a line of sight."""
    for seed, (name, law, one) in enumerate(SCENARIOS, 200):
        place = np.zeros((round(100_000 * effort), 2))
        place[:, 0] = distance = float(one["los"][0])
        _, loss = Cell(path_loss=law).losses(place, np.zeros((1, 2)), Streams(seed))
        los = law.draw(place[:, 0], 0, Streams(seed)).los
        states = ("LOS", los, law.los_loss_db), ("NLOS", ~los, law.nlos_loss_db)
        for (state, there, loss_db), sigma in zip(states, one["sigma_db"], strict=True):
            yield deviation_of(f"{name} {state} sigma in dB", loss[there, 0], _float(loss_db(distance)), sigma)


def shadowing_correlation(effort: float) -> Iterator[Row]:
    """Shadowing over distance and sites: products at two places or towards two sites, of variance 1, over seeds."""
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
    """Fading: Kolmogorov-Smirnov statistics of power gains, drawn for one client block by block."""
    block = np.arange(round(400_000 * effort))
    for number, (name, (law, gains)) in enumerate(FADING.items()):
        gain = law.gain_quantile(Streams(3).uniform("fading", number, block))
        yield fit_of(f"{name}: Kolmogorov-Smirnov", gain, gains.cdf)


def rates(effort: float) -> Iterator[Row]:
    """Capacity in bit/s/Hz, and outage: mean rates over fading, and how often they fall short of a level."""
    block = np.arange(round(400_000 * effort))
    for snr_db in (0, 10, 20):
        snr = 10 ** (snr_db / 10)
        theory = capacity(snr)
        channel = Channel(np.array([snr]), 1.0, Rayleigh(), "fading", Streams(10 + snr_db))
        yield mean_of(f"Rayleigh ergodic capacity at {snr_db} dB, sampled", channel.rate_bps(0, block), theory)
        yield exact(f"Rayleigh ergodic capacity at {snr_db} dB, expected", channel.ergodic_rate_bps[0], theory)
    for name, (law, gains) in list(FADING.items())[:2]:
        rate = Channel(np.array([10.0]), 1.0, law, "fading", Streams(5)).rate_bps(0, block)
        for level in (1.0, 2.0):
            theory = float(gains.cdf((2**level - 1) / 10))
            yield share_of(f"{name.split()[0]} outage at 10 dB, P(rate < {level:g})", rate < level, theory)


def transfer(effort: float) -> Iterator[Row]:
    """Transfer, in blocks: durations of transfers as long as 10^4 blocks of mean rate, in blocks.

    They begin with a block, and end within one that is met in proportion to its rate: by Wald's identity the mean is
    N + cv^2 / 2 with the coefficient of variation cv of the rate, and the variance about N cv^2.
    """
    snr, blocks, clients = 10.0, 10_000, round(800 * effort)
    mean, square = rate_moments(snr)
    variation = square / mean**2 - 1
    channel = Channel(np.full(clients, snr), 1.0, Rayleigh(coherence_s=1.0), "fading", Streams(6))
    took = channel.transfer_s(np.arange(clients), np.zeros(clients), blocks * mean)
    yield mean_of("transfer over 10^4 Rayleigh blocks, mean", took, blocks + variation / 2)
    deviation = math.sqrt(blocks * variation)
    yield deviation_of("transfer over 10^4 Rayleigh blocks, deviation", took, blocks + variation / 2, deviation)


def _friis_db(carrier_hz: float, distance_m: float) -> float:
    return 20 * log10(4 * pi * distance_m * carrier_hz / 299_792_458)


def _float(value: FloatArray) -> float:
    return float(value)
