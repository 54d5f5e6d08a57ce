"""Loss of walls: outdoor-to-indoor loss of 3GPP TR 38.901 (V16.1.0), clause 7.4.3.

A signal into a building loses, on top of the outdoor path, ``PL_tw + PL_in + N(0, sigma_P)``: through the wall,
which is partly glass and partly concrete (table 7.4.3-2), 0.5 dB for each metre inside, and a normal rest.
"""

from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from fedsim.arrays import FloatArray
from fedsim.units import db_to_linear, linear_to_db

Material = Literal["glass", "irr-glass", "concrete", "wood"]
Building = Literal["low", "high"]

PENETRATION_SIGMA_DB: Final[dict[Building, float]] = {"low": 4.4, "high": 6.5}
"""Standard deviation sigma_P by kind of building, table 7.4.3-2."""

INDOOR_LOSS_DB_PER_M: Final = 0.5

SINGLE_FREQUENCY_WALL_DB: Final = 20.0
"""PL_tw of table 7.4.3-3, for studies of a single carrier below 6 GHz."""

_MATERIALS: Final[dict[Material, tuple[float, float]]] = {
    "glass": (2.0, 0.2),
    "irr-glass": (23.0, 0.3),
    "concrete": (5.0, 4.0),
    "wood": (4.85, 0.12),
}
_GLASS: Final[dict[Building, tuple[Material, float]]] = {"low": ("glass", 0.3), "high": ("irr-glass", 0.7)}


def material_loss_db(material: Material, carrier_hz: float) -> float:
    """Return the loss through a material, table 7.4.3-1: ``a + b * f / GHz``.

    ``"glass"`` is a standard multi-pane window, ``"irr-glass"`` one that reflects infrared.
    """
    constant, slope = _MATERIALS[material]
    return constant + slope * carrier_hz / 1e9


def wall_loss_db(building: Building, carrier_hz: float) -> float:
    """Return PL_tw of table 7.4.3-2: 5 dB and the mean power through the wall's glass and concrete.

    A low-loss building has standard windows in 30 % of its wall, a high-loss one infrared-reflecting windows in
    70 %; the rest is concrete.
    """
    glass, share = _GLASS[building]
    through = share * db_to_linear(-material_loss_db(glass, carrier_hz))
    through = through + (1.0 - share) * db_to_linear(-material_loss_db("concrete", carrier_hz))
    return float(5.0 - linear_to_db(through))


def indoor_loss_db(indoor_m: ArrayLike) -> FloatArray:
    """Return PL_in for a distance inside the building, 0.5 dB per metre, table 7.4.3-2."""
    return INDOOR_LOSS_DB_PER_M * np.asarray(indoor_m, dtype=np.float64)
