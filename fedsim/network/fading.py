"""Small-scale fading: how a link's power gain varies from one coherence time to the next.

A law gives the quantile of the power gain (mean 1) and the mean spectral efficiency over it. Gains are constant
within a block of one coherence time and independent between blocks.
"""

import math
from typing import ClassVar

import numpy as np
from pydantic import PositiveFloat

from fedsim.network.base import FloatArray
from fedsim.network.capacity import rayleigh_efficiency, spectral_efficiency
from fedsim.parts import Catalogue, Part

FADINGS = Catalogue(
    "fading",
    "fedsim.fadings",
    ("gain_quantile", "mean_spectral_efficiency"),
    {"none": "fedsim.network.fading:NoFading", "rayleigh": "fedsim.network.fading:Rayleigh"},
)


class NoFading(Part):
    """A gain of 1, for ever."""

    coherence_s: ClassVar[float] = math.inf

    def gain_quantile(self, u: FloatArray) -> FloatArray:
        """Return ones of the shape of u."""
        return np.ones_like(u)

    def mean_spectral_efficiency(self, snr: FloatArray) -> FloatArray:
        """Return ``log2(1 + snr)``."""
        return spectral_efficiency(snr)


class Rayleigh(Part):
    """Many scattered paths and no line of sight: the power gain is exponential with mean 1.

    Attributes
    ----------
    coherence_s : float
        Length of a block. The default is that of Clarke's model, ``0.423 / f_D``, for a pedestrian: 3 km/h at a
        carrier of 2 GHz give a Doppler frequency ``f_D`` of 5.56 Hz (Rappaport, "Wireless Communications",
        2nd edition, section 5.4.3).
    """

    coherence_s: PositiveFloat = 0.076

    def gain_quantile(self, u: FloatArray) -> FloatArray:
        """Return ``-ln(1 - u)``."""
        return -np.log1p(-u)

    def mean_spectral_efficiency(self, snr: FloatArray) -> FloatArray:
        """Return the ergodic capacity ``e^(1/snr) E1(1/snr) / ln 2``."""
        return rayleigh_efficiency(snr)
