"""Bands and buildings: rates bounded and averaged over frequencies, floors, environments and indoor shadowing."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from scipy import integrate

from fedsim.network import CorrelatedShadowing, Rayleigh, Shannon, UrbanMacro
from fedsim.network.radio.channel import SHANNON_LIMIT, Channel
from fedsim.network.radio.mcs import ModulationAndCoding
from fedsim.network.radio.selectivity import STATES, coherence_bandwidths
from fedsim.network.radio.tr38901.outdoor import floor_height_m
from fedsim.streams import Streams
from validation import FADING, PUBLISHED, BoolArray, FloatArray, Row, exact, off_by, share_of

UMA_S: Final = 363e-9  # TR 38.901, table 7.7.3-2: normal delay spread in UMa up to 6 GHz
CEILING_WITHIN: Final = 1e-5

DELAYS: Final = np.array(PUBLISHED["tdl_a"]["delays"])
POWERS_DB: Final = np.array(PUBLISHED["tdl_a"]["powers_db"])


def ceilings(effort: float) -> Iterator[Row]:
    """Ceilings in bit/s/Hz, and thresholds: means beside quadrature, and NR's codes."""
    del effort
    for name in ("Rayleigh", "Rician K = 7 dB", "Nakagami m = 3"):
        law, gains = FADING[name]
        for snr_db in (10, 25, 35):
            snr = 10 ** (snr_db / 10)
            found = float(Shannon(snr_gap_db=0.0).mean_efficiency(np.array([snr]), law)[0])
            yield exact(f"{name} at {snr_db} dB up to 7.4 bit/s/Hz", found, _bounded(snr, gains.sf), CEILING_WITHIN)
    codes = ModulationAndCoding(table="256qam", gap="nr-ldpc")
    for cqi, bits, rate, gap_db in ((1, 2, 78, 1.0), (5, 4, 490, 2.0), (11, 6, 873, 3.0), (15, 8, 948, 3.0)):
        limit_db = 10 * math.log10(2 ** (bits * rate / 1024) - 1)
        yield exact(f"CQI {cqi} (256qam), dB of NR's code", float(codes.thresholds_db()[cqi - 1]), limit_db + gap_db)


def _bounded(snr: float, survival: Callable[[float], float]) -> float:
    """Return the mean of the lesser of ``log2(1 + snr * gain)`` and 7.4: the integral of its survival function."""
    points = np.linspace(0, 7.4, 5)
    return math.fsum(
        integrate.quad(lambda level: float(survival((2**level - 1) / snr)), low, high, epsabs=1e-9)[0]
        for low, high in itertools.pairwise(points)
    )


def selectivity(effort: float) -> Iterator[Row]:
    """Bands that fade in parts: how rates of a band vary, beside drawn taps transformed to 256 frequencies.

    Besides both samples the states from which fedsim knows the law count for the error.
    """
    blocks = round(60_000 * effort)
    power = 10 ** (POWERS_DB / 10)
    for bandwidth_hz in (1e6, 10e6):
        gain = _over_band(blocks, bandwidth_hz, power / power.sum())
        drawn = np.log2(1 + 10 * gain).mean(axis=1)
        channel = Channel(
            np.array([10.0]), bandwidth_hz, Rayleigh(), "fading", Streams(30), SHANNON_LIMIT, delay_spread_s=UMA_S
        )
        found = channel.rate_bps(0, np.arange(blocks))
        name = f"{bandwidth_hz / 1e6:g} MHz, TDL-A of 363 ns, 10 dB"
        theory, value = (float(rate.std() / rate.mean()) for rate in (drawn, found))
        error = theory * math.sqrt(1 / blocks + 1 / (2 * STATES))
        yield off_by(f"{name}: deviation over mean of the rate", value, theory, error)
        low, less = (float(np.mean(rate < rate.mean() / 2)) for rate in (drawn, found))
        error = math.sqrt(low * (1 - low) * (2 / blocks + 1 / STATES))
        yield off_by(f"{name}: P(rate < mean / 2)", less, low, error)
        place = np.linspace(0, 1, 20_001)
        apart = np.abs(np.exp(-2j * np.pi * UMA_S * bandwidth_hz * np.outer(place, DELAYS)) @ (power / power.sum()))
        alike = float(integrate.simpson(2 * (1 - place) * apart**2, x=place))
        parts = coherence_bandwidths(bandwidth_hz, UMA_S)
        yield exact(f"{name}: coherence bandwidths", parts, 1 / alike, 1e-6)


def _over_band(blocks: int, bandwidth_hz: float, power: FloatArray) -> FloatArray:
    """Return gains at 64 frequencies of a band, by a Fourier transform of taps drawn on a grid of delays."""
    rng, over = np.random.default_rng(31), 16
    step = np.rint(DELAYS * UMA_S * bandwidth_hz * over).astype(int)
    amplitude = rng.standard_normal((blocks, power.size, 2)) @ [1, 1j] * np.sqrt(power / 2)
    gain = np.empty((blocks, 64), dtype=np.float32)
    for first in range(0, blocks, 5000):
        response = np.zeros((min(5000, blocks - first), 1024), dtype=np.complex64)
        for tap, place in enumerate(step):
            response[:, place] += amplitude[first : first + 5000, tap]
        gain[first : first + 5000] = np.abs(np.fft.fft(response, axis=1)[:, :64]) ** 2
    return gain.astype(np.float64)


def indoors(effort: float) -> Iterator[Row]:
    """Indoors: floors of table 7.2-1, the environment's height of each link, and the shadowing of indoor clients."""
    clients = round(200_000 * effort)
    height_m = floor_height_m(np.arange(clients), Streams(50))
    for floor in (1, 4, 8):
        theory = math.fsum(1 / floors for floors in range(max(4, floor), 9)) / 5
        yield share_of(f"indoor clients on floor {floor}", height_m == 3 * (floor - 1) + 1.5, theory)
    law, distance_m = UrbanMacro(client_height_m=22.5), np.full(clients, 300.0)
    bend = 0.95**1.5 * 1.25 * 3**3 * math.exp(-2)
    # Towards two sites independently: both over an environment of 1 m.
    both: BoolArray = np.ones(clients, dtype=np.bool_)
    for site in (0, 1):
        # As a run draws it, by client and site.
        u = Streams(51).uniform("environment-height", np.arange(clients), site)
        both &= law.environment_height_m(distance_m, u) == 1
    yield share_of("UMa environment of 1 m towards two sites", both, 1 / (1 + bend) ** 2)
    shadowing = CorrelatedShadowing(decorrelation_m=50.0, indoor_decorrelation_m=7.0)
    seeds, place = round(4_000 * effort), np.array([[0.0, 0.0], [7.0, 0.0]])
    drawn = np.stack(
        [
            shadowing.standard_in_buildings(place, 1, Streams(seed), np.array([True, True]))[:, 0]
            for seed in range(seeds)
        ]
    )
    found = float(np.mean(drawn[:, 0] * drawn[:, 1]))  # of mean 0 and variance 1
    error = math.sqrt((1 + math.exp(-2)) / seeds)
    yield off_by("shadowing indoors, correlation over 7 m", found, math.exp(-1), error)
