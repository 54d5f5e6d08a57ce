"""Indoor office and indoor factory of 3GPP TR 38.901 (V16.1.0), tables 7.4.1-1 and 7.4.2-1."""

import math
from typing import Annotated, ClassVar, Final, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from fedsim.arrays import FloatArray
from fedsim.network.radio.tr38901.base import Carrier, Scenario38901
from fedsim.units import Metres, Positive

Height = Annotated[Metres, Field(gt=0, le=25)]


class IndoorOffice(Scenario38901):
    """InH of TR 38.901: an office floor, clients from 1 m to 150 m away.

    Line of sight: sigma 3 dB, 17.3 dB per decade. Without: sigma 8.03 dB, 38.3 dB per decade.

    Attributes
    ----------
    office : ``"mixed"`` or ``"open"``, which differ by how often there is a line of sight

    Examples
    --------
    >>> round(float(IndoorOffice(carrier_hz=3.5e9).los_loss_db(10.0)), 1)  # 32.4 + 17.3 log10(10.2) + 20 log10(3.5)
    60.7
    """

    los_sigma_db: ClassVar[float] = 3.0
    nlos_sigma_db: ClassVar[float] = 8.03
    least_distance_m: ClassVar[float] = 1.0

    carrier_hz: Carrier = 3.5e9
    base_height_m: Height = 3.0
    client_height_m: Height = 1.0
    office: Literal["mixed", "open"] = "mixed"

    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        distance = np.asarray(distance_m, dtype=np.float64)
        near, knee, share, first, second = (
            (1.2, 6.5, 0.32, 4.7, 32.6) if self.office == "mixed" else (5.0, 49.0, 0.54, 70.8, 211.7)
        )
        # A mixed office's second branch begins at its knee, an open one's just behind it.
        beyond = distance >= knee if self.office == "mixed" else distance > knee
        falling = np.where(
            beyond,
            share * np.exp(-(np.maximum(distance, knee) - knee) / second),
            np.exp(-np.clip(distance - near, 0.0, None) / first),
        )
        return np.where(distance <= near, 1.0, falling)

    def los_loss_db(self, distance_m: ArrayLike) -> FloatArray:
        slant = self._slant_m(self._ground_m(distance_m))
        return np.asarray(32.4 + 17.3 * np.log10(slant) + 20 * math.log10(self._carrier_ghz))

    def nlos_loss_db(self, distance_m: ArrayLike) -> FloatArray:
        slant = self._slant_m(self._ground_m(distance_m))
        loss = 38.3 * np.log10(slant) + 17.30 + 24.9 * math.log10(self._carrier_ghz)
        return np.maximum(loss, self.los_loss_db(distance_m))


Hall = Literal["sl", "dl", "sh", "dh", "hh"]

# Constant, dB per decade of distance, sigma in dB without a line of sight; 20 dB per decade of frequency.
_NLOS: Final[dict[Hall, tuple[float, float, float]]] = {
    "sl": (33.0, 25.5, 5.7),
    "dl": (18.6, 35.7, 7.2),
    "sh": (32.4, 23.0, 5.9),
    "dh": (33.63, 21.9, 4.0),
}


class IndoorFactory(Scenario38901):
    """InF of TR 38.901: a factory hall, clients from 1 m to 600 m away.

    Line of sight: sigma 4.3 dB, 21.5 dB per decade. Without: by kind of hall, sigma 5.7 (SL), 7.2 (DL), 5.9 (SH) and
    4.0 dB (DH).

    Attributes
    ----------
    hall : sparse (s) or dense (d) clutter, base station low (l) within it or high (h) above it; ``"hh"`` with
        both antennas above the clutter always has a line of sight
    clutter_density : share r of the floor that clutter covers; below 0.4 counts as sparse (table 7.2-4)
    clutter_size_m : d_clutter, typically 10 m where sparse and 2 m where dense
    clutter_height_m : h_c, at most 10 m; matters to the halls with a high base station

    Examples
    --------
    >>> IndoorFactory(hall="hh").los_probability(np.array([10.0, 300.0])).tolist()
    [1.0, 1.0]
    >>> hall = IndoorFactory(hall="dl", clutter_density=0.4, clutter_size_m=2.0)
    >>> round(float(hall.los_probability(10.0)), 4)  # (1 - 0.4)**(10 / 2)
    0.0778
    """

    los_sigma_db: ClassVar[float] = 4.3
    nlos_sigma_db: ClassVar[float] = 7.2
    least_distance_m: ClassVar[float] = 1.0

    carrier_hz: Carrier = 3.5e9
    base_height_m: Height = 8.0
    client_height_m: Height = 1.5
    hall: Hall = "sh"
    clutter_density: Annotated[float, Field(gt=0, lt=1)] = 0.2
    clutter_size_m: Positive[Metres] = 10.0
    clutter_height_m: Annotated[Metres, Field(ge=0, le=10)] = 2.0

    @model_validator(mode="after")
    def _heights_are_in_order(self) -> Self:
        if self.hall in ("sh", "dh") and not self.client_height_m < self.clutter_height_m < self.base_height_m:
            raise ValueError(
                f"clutter_height_m = {self.clutter_height_m} is not allowed; it must lie between "
                f"client_height_m = {self.client_height_m} and base_height_m = {self.base_height_m} "
                "in a hall of kind 'sh' or 'dh'"
            )
        return self

    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        distance = np.asarray(distance_m, dtype=np.float64)
        if self.hall == "hh":
            return np.ones_like(distance)
        scale = -self.clutter_size_m / math.log1p(-self.clutter_density)
        if self.hall in ("sh", "dh"):
            above = self.base_height_m - self.client_height_m
            scale *= above / (self.clutter_height_m - self.client_height_m)
        return np.exp(-distance / scale)

    def los_loss_db(self, distance_m: ArrayLike) -> FloatArray:
        slant = self._slant_m(self._ground_m(distance_m))
        return np.asarray(31.84 + 21.50 * np.log10(slant) + 19.00 * math.log10(self._carrier_ghz))

    def nlos_loss_db(self, distance_m: ArrayLike) -> FloatArray:
        """Return PL of the hall's kind in dB, never below PL_LOS and, in a hall of kind DL, never below PL_SL."""
        slant = self._slant_m(self._ground_m(distance_m))
        loss = self.los_loss_db(distance_m)
        floors: dict[Hall, tuple[Hall, ...]] = {"dl": ("sl", "dl"), "hh": ()}
        for hall in floors.get(self.hall, (self.hall,)):
            constant, slope, _ = _NLOS[hall]
            loss = np.maximum(loss, constant + slope * np.log10(slant) + 20 * math.log10(self._carrier_ghz))
        return loss

    def sigma_db(self, los: ArrayLike) -> FloatArray:
        without = self.los_sigma_db if self.hall == "hh" else _NLOS[self.hall][2]
        return np.where(los, self.los_sigma_db, without)
