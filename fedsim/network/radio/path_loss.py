"""Path loss over distance: free space and log-distance."""

import math

import numpy as np
from numpy.typing import ArrayLike

from fedsim.arrays import FloatArray
from fedsim.registry import Component, Registry
from fedsim.units import SPEED_OF_LIGHT_M_PER_S, Decibels, Exponent, Hertz, Metres, NonNegative, Positive

PATH_LOSSES = Registry(
    "path loss",
    "fedsim.path_losses",
    ("loss_db",),
    {
        "free-space": "fedsim.network.radio.path_loss:FreeSpace",
        "log-distance": "fedsim.network.radio.path_loss:LogDistance",
        "uma": "fedsim.network.radio.tr38901.outdoor:UrbanMacro",
        "umi": "fedsim.network.radio.tr38901.outdoor:UrbanMicro",
        "rma": "fedsim.network.radio.tr38901.rural:RuralMacro",
        "inh": "fedsim.network.radio.tr38901.indoor:IndoorOffice",
        "inf": "fedsim.network.radio.tr38901.indoor:IndoorFactory",
    },
)


class FreeSpace(Component):
    """Path loss without any obstacle or ground, ``20 log10(4 pi d f / c)``, and never below 0 dB.

    H. T. Friis, "A note on a simple transmission formula", Proc. IRE 34(5), 1946, between isotropic antennas.

    Attributes
    ----------
    carrier_hz : carrier frequency, 2 GHz by default
    """

    carrier_hz: Positive[Hertz] = 2e9

    def loss_db(self, distance_m: ArrayLike) -> FloatArray:
        waves = 4 * math.pi * self.carrier_hz / SPEED_OF_LIGHT_M_PER_S
        with np.errstate(divide="ignore"):
            loss = 20 * np.log10(waves * np.asarray(distance_m, dtype=np.float64))
        return np.asarray(np.maximum(0.0, loss))


class LogDistance(Component):
    """Path loss that grows by ``10 * exponent`` dB per decade of distance.

    ``loss = reference_loss_db + 10 * exponent * log10(distance / reference_distance_m)``, and never below
    0 dB: no passive path amplifies (with the defaults that matters below 0.4 m). The defaults are the urban macro
    cell at 2 GHz with antennas 15 m above the roofs, 128.1 + 37.6 log10(R / km): 3GPP TR 36.942, section 4.5.2.

    Attributes
    ----------
    exponent : a tenth of the dB that a decade of distance costs, above 0
    reference_loss_db : loss at the reference distance, at least 0
    reference_distance_m : above 0
    """

    exponent: Positive[Exponent] = 3.76
    reference_loss_db: NonNegative[Decibels] = 128.1
    reference_distance_m: Positive[Metres] = 1000.0

    def loss_db(self, distance_m: ArrayLike) -> FloatArray:
        ratio = np.asarray(distance_m, dtype=np.float64) / self.reference_distance_m
        with np.errstate(divide="ignore"):
            loss = self.reference_loss_db + 10 * self.exponent * np.log10(ratio)
        return np.maximum(0.0, loss)
