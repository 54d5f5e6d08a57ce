"""Sionna's channels beside fedsim's own laws, where Sionna is installed."""

import math
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Final

import numpy as np
from scipy import stats

from fedsim.network.radio.fading import Rayleigh, Rician
from fedsim.network.radio.selectivity import coherence_bandwidths
from fedsim.network.radio.sionna.fading import SAMPLES, SionnaCdl, SionnaTdl
from validation import PUBLISHED, FloatArray, Row, fit_of, mean_of, off_by

UMA_S: Final = 363e-9
STATES: Final = 4096
CONSTANT_DB: Final = PUBLISHED["tdl_d"]["constant_db"]
SCATTERED_DB: Final = np.array(PUBLISHED["tdl_d"]["scattered_db"])


def channels(_effort: float) -> Iterator[Row]:
    """Sionna's channels, where it is installed: gains beside the laws that fedsim has."""
    if find_spec("sionna") is None:
        return
    k = 10 ** (CONSTANT_DB / 10) / float((10 ** (SCATTERED_DB / 10)).sum())
    rician = stats.ncx2(2, 2 * k, scale=1 / (2 * (1 + k)))
    for law in (SionnaTdl, SionnaCdl):
        name, ours = law.kind.removeprefix("sionna-").upper(), Rayleigh()
        for profile in ("A", "C"):
            gain = drawn(law(profile=profile))
            yield fit_of(f"Sionna {name}-{profile} against Rayleigh: Kolmogorov-Smirnov", gain, stats.expon().cdf)
        theory = float(ours.mean_spectral_efficiency(np.array([10.0]))[0])
        yield mean_of(f"Sionna {name}-C, capacity at 10 dB, bit/s/Hz", np.log2(1 + 10 * gain), theory)
        gain = drawn(law(profile="D"))
        label = f"{10 * math.log10(k):.1f} dB"
        yield fit_of(f"Sionna {name}-D against Rician K = {label}: Kolmogorov-Smirnov", gain, rician.cdf)
        theory = float(Rician(k_db=10 * math.log10(k)).mean_spectral_efficiency(np.array([10.0]))[0])
        yield mean_of(f"Sionna {name}-D, capacity at 10 dB, bit/s/Hz", np.log2(1 + 10 * gain), theory)
        for bandwidth_hz in (1e6, 10e6):
            mean = law(profile="A").gains_over_band(STATES, 48, bandwidth_hz, UMA_S).mean(axis=1)
            theory = 1 / math.sqrt(coherence_bandwidths(bandwidth_hz, UMA_S))
            error = theory * math.sqrt((stats.kurtosis(mean, fisher=False) - 1) / (4 * STATES))
            title = f"Sionna {name}-A, {bandwidth_hz / 1e6:g} MHz, 363 ns: deviation of the band's gain"
            yield off_by(title, mean.std(), theory, error)


def drawn(law: SionnaTdl | SionnaCdl) -> FloatArray:
    """Return the gains that a law has drawn: its quantiles at the places of its samples."""
    number = SAMPLES[law.kind]
    return law.gain_quantile((np.arange(number) + 0.5) / number)
