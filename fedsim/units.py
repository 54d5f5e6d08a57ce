"""Decibels, thermal noise and their constants.

Inside fedsim time is float seconds, data are bits, rates are bit/s, powers dBm and lengths metres; the unit
stands in the name. The functions take floats or arrays and return float64 of the same shape.
"""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from fedsim.arrays import FloatArray

SPEED_OF_LIGHT_M_PER_S: Final = 299_792_458.0
BOLTZMANN_J_PER_K: Final = 1.380_649e-23
REFERENCE_TEMPERATURE_K: Final = 290.0
BITS_PER_FLOAT32: Final = 32


def db_to_linear(value_db: ArrayLike) -> FloatArray:
    """Return the power ratio of a level in dB, of the same shape.

    >>> float(db_to_linear(30.0))
    1000.0
    """
    return np.asarray(np.power(10.0, np.asarray(value_db, dtype=np.float64) / 10.0))


def linear_to_db(ratio: ArrayLike) -> FloatArray:
    """Return the level in dB of a positive power ratio, of the same shape.

    >>> float(linear_to_db(100.0))
    20.0
    """
    return np.asarray(10.0 * np.log10(np.asarray(ratio, dtype=np.float64)))


def thermal_noise_dbm(bandwidth_hz: ArrayLike, noise_figure_db: float = 0.0) -> FloatArray:
    """Return the noise power k T B of a receiver at 290 K, raised by its noise figure, in dBm."""
    power_w = BOLTZMANN_J_PER_K * REFERENCE_TEMPERATURE_K * np.asarray(bandwidth_hz, dtype=np.float64)
    return linear_to_db(power_w * 1e3) + noise_figure_db
