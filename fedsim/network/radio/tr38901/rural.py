"""Rural macro cells of 3GPP TR 38.901 (V16.1.0), tables 7.4.1-1 and 7.4.2-1."""

import math
from dataclasses import replace
from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from fedsim.arrays import FloatArray, IntArray
from fedsim.network.radio.contracts import LargeScale
from fedsim.network.radio.tr38901.base import SPEED_OF_LIGHT_M_PER_S
from fedsim.network.radio.tr38901.outdoor import OutdoorScenario
from fedsim.streams import Streams
from fedsim.units import Hertz, Metres


class RuralMacro(OutdoorScenario):
    """RMa of TR 38.901: wide cells, clients from 10 m to 10 km away (5 km without a line of sight).

    Line of sight: sigma 4 dB up to the breakpoint ``2 pi h_BS h_UT f / c`` and 6 dB beyond. Without: sigma 8 dB.
    Clients indoors are in low-loss buildings, following clause 7.4.3.1.

    Attributes
    ----------
    building_height_m, street_width_m : means over the area

    Examples
    --------
    >>> RuralMacro().los_probability(np.array([10.0, 1010.0])).round(3).tolist()  # exp(-1) at 1 km more
    [1.0, 0.368]
    """

    los_sigma_db: ClassVar[float] = 4.0
    far_los_sigma_db: ClassVar[float] = 6.0
    nlos_sigma_db: ClassVar[float] = 8.0
    o2i_sigma_db: ClassVar[float] = 8.0
    deepest_m: ClassVar[float] = 10.0

    carrier_hz: Annotated[Hertz, Field(ge=0.5e9, le=30e9)] = 0.7e9
    base_height_m: Annotated[Metres, Field(ge=10, le=150)] = 35.0
    client_height_m: Annotated[Metres, Field(ge=1, le=10)] = 1.5
    building_height_m: Annotated[Metres, Field(ge=5, le=50)] = 5.0
    street_width_m: Annotated[Metres, Field(ge=5, le=50)] = 20.0

    @model_validator(mode="after")
    def _buildings_are_low_loss(self) -> Self:
        if self.high_loss_share > 0 or self.penetration != "materials":
            raise ValueError(
                f"high_loss_share = {self.high_loss_share}, penetration = {self.penetration!r} are not allowed; "
                "rural macro cells have the low-loss model of table 7.4.3-2 only: 0 and 'materials'"
            )
        return self

    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        """Return ``exp(-(d - 10) / 1000)``, and 1 up to 10 m."""
        return np.exp(-np.maximum(np.asarray(distance_m, dtype=np.float64) - 10.0, 0.0) / 1000.0)

    def breakpoint_m(self) -> float:
        """Return the breakpoint distance d_BP, note 5 of table 7.4.1-1."""
        return 2 * math.pi * self.base_height_m * self.client_height_m * self.carrier_hz / SPEED_OF_LIGHT_M_PER_S

    def los_loss_db(self, distance_m: ArrayLike) -> FloatArray:
        ground = self._ground_m(distance_m)
        slant, knee = self._slant_m(ground), self.breakpoint_m()
        beyond = self._near_loss_db(np.asarray(knee)) + 40 * np.log10(slant / knee)
        return np.where(ground <= knee, self._near_loss_db(slant), beyond)

    def nlos_loss_db(self, distance_m: ArrayLike) -> FloatArray:
        slant = self._slant_m(self._ground_m(distance_m))
        base, roof = self.base_height_m, self.building_height_m
        loss = (
            161.04
            - 7.1 * math.log10(self.street_width_m)
            + 7.5 * math.log10(roof)
            - (24.37 - 3.7 * (roof / base) ** 2) * math.log10(base)
            + (43.42 - 3.1 * math.log10(base)) * (np.log10(slant) - 3)
            + 20 * math.log10(self._carrier_ghz)
            - (3.2 * math.log10(11.75 * self.client_height_m) ** 2 - 4.97)
        )
        return np.maximum(loss, self.los_loss_db(distance_m))

    def draw(
        self, distance_m: FloatArray, site: int | IntArray, streams: Streams, client: IntArray | None = None
    ) -> LargeScale:
        """Return the propagation with a sigma in sight that is wider beyond the breakpoint."""
        drawn = super().draw(distance_m, site, streams, client)
        far = drawn.los & (distance_m > self.breakpoint_m()) & (drawn.sigma_db == self.los_sigma_db)
        return replace(drawn, sigma_db=np.where(far, self.far_los_sigma_db, drawn.sigma_db))

    def _near_loss_db(self, slant_m: FloatArray) -> FloatArray:
        power = self.building_height_m**1.72
        return np.asarray(
            20 * np.log10(40 * math.pi * slant_m * self._carrier_ghz / 3)
            + min(0.03 * power, 10.0) * np.log10(slant_m)
            - min(0.044 * power, 14.77)
            + 0.002 * math.log10(self.building_height_m) * slant_m
        )
