"""Urban macro and urban micro cells of 3GPP TR 38.901 (V16.1.0), tables 7.4.1-1 and 7.4.2-1.

Streams besides ``line-of-sight``, all by client and the same for every site: ``indoor`` (whether in a building),
``building`` (of which kind), ``indoor-distance`` (two numbers, or one for each site), ``penetration`` and ``floor``
(two numbers). ``environment-height`` is by (client, site): note 1 of table 7.4.1-1 has it "independently determined
for every link between BS sites and UTs".

A signal into a building loses, on top of the outdoor path, ``PL_tw + PL_in + N(0, sigma_P)`` (clause 7.4.3): through
the wall, which is partly glass and partly concrete (table 7.4.3-2), 0.5 dB for each metre inside, and a normal rest.
"""

import math
from typing import Annotated, ClassVar, Final, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from fedsim.arrays import BoolArray, FloatArray, IntArray, normal_quantile
from fedsim.network.radio.contracts import LargeScale
from fedsim.network.radio.tr38901.base import SPEED_OF_LIGHT_M_PER_S, Carrier, Scenario38901
from fedsim.streams import Streams
from fedsim.units import Metres, db_to_linear, linear_to_db

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


Share = Annotated[float, Field(ge=0, le=1)]


class OutdoorScenario(Scenario38901):
    """A scenario with the base station outdoors and some of the clients in buildings, clause 7.4.3.1.

    An indoor client stands behind d_2D-in metres of building, the lesser of two numbers uniform up to
    `deepest_m`. Whether its building has a line of sight depends on the distance outdoors, the outdoor loss on the
    whole distance; its shadowing has the deviation of the column O2I of table 7.5-6.

    Attributes
    ----------
    indoor_share : share of the clients that are in buildings
    high_loss_share : share of them in buildings of high loss (infrared-reflecting windows)
    penetration : ``"materials"``, or ``"single-frequency"``
        Loss of walls: that of tables 7.4.3-1 and 7.4.3-2 at any carrier, or the 20 dB of table 7.4.3-3, which the
        report has for studies of one carrier below 6 GHz (as in TR 36.873). There d_2D-in is one uniform number for
        each link, nothing is normal, and all buildings are alike.
    """

    o2i_sigma_db: ClassVar[float] = 7.0
    deepest_m: ClassVar[float] = 25.0
    least_distance_m: ClassVar[float] = 10.0

    indoor_share: Share = 0.0
    high_loss_share: Share = 0.0
    penetration: Literal["materials", "single-frequency"] = "materials"

    @model_validator(mode="after")
    def _single_frequency_is_low(self) -> Self:
        if self.penetration == "single-frequency" and self.carrier_hz >= 6e9:
            raise ValueError(
                f"penetration = 'single-frequency' is not allowed at carrier_hz = {self.carrier_hz}; "
                "it must be below 6e9"
            )
        return self

    def draw(
        self, distance_m: FloatArray, site: int | IntArray, streams: Streams, client: IntArray | None = None
    ) -> LargeScale:
        ids = np.arange(distance_m.size) if client is None else client
        indoor = streams.uniform("indoor", ids) < self.indoor_share
        inside_m = np.where(indoor, np.minimum(self._deep_m(ids, site, streams), distance_m), 0.0)
        loss, los = self._outdoors(distance_m, inside_m, indoor, ids, site, streams)
        if self.indoor_share:
            loss = loss + np.where(indoor, self._building_loss_db(ids, inside_m, streams), 0.0)
        return LargeScale(loss, np.where(indoor, self.o2i_sigma_db, self.sigma_db(los)), los, indoor)

    def _outdoors(
        self,
        distance_m: FloatArray,
        inside_m: FloatArray,
        indoor: BoolArray,
        client: IntArray,
        site: int | IntArray,
        streams: Streams,
    ) -> tuple[FloatArray, BoolArray]:
        """Return the path loss in dB without that of buildings, and whether there is a line of sight."""
        los = self._has_line_of_sight(self.los_probability(distance_m - inside_m), client, site, streams)
        return np.where(los, *self._drawn_db(distance_m, client, site, streams)), los

    def _deep_m(self, client: IntArray, site: int | IntArray, streams: Streams) -> FloatArray:
        if self.penetration == "single-frequency":
            return self.deepest_m * streams.uniform("indoor-distance", client, 2 + site)
        one, other = (streams.uniform("indoor-distance", client, k) for k in (0, 1))
        return self.deepest_m * np.minimum(one, other)

    def _building_loss_db(self, client: IntArray, inside_m: FloatArray, streams: Streams) -> FloatArray:
        if self.penetration == "single-frequency":
            return SINGLE_FREQUENCY_WALL_DB + indoor_loss_db(inside_m)
        high = streams.uniform("building", client) < self.high_loss_share
        wall = np.where(high, wall_loss_db("high", self.carrier_hz), wall_loss_db("low", self.carrier_hz))
        sigma = np.where(high, PENETRATION_SIGMA_DB["high"], PENETRATION_SIGMA_DB["low"])
        rest = sigma * normal_quantile(streams.uniform("penetration", client))
        return wall + indoor_loss_db(inside_m) + rest

    def _drawn_db(
        self, distance_m: FloatArray, client: IntArray, site: int | IntArray, streams: Streams
    ) -> tuple[FloatArray, FloatArray]:
        return self.los_loss_db(distance_m), self.nlos_loss_db(distance_m)


def floor_height_m(client: IntArray, streams: Streams) -> FloatArray:
    """Return heights of clients in buildings in metres, table 7.2-1: ``3 (n_fl - 1) + 1.5``.

    The floor n_fl is uniform in 1..N_fl, and the number of floors N_fl of the building uniform in 4..8.
    """
    floors = 4 + np.floor(5 * streams.uniform("floor", client, 0))
    return np.asarray(3.0 * np.floor(floors * streams.uniform("floor", client, 1)) + 1.5)


class UrbanScenario(OutdoorScenario):
    """A scenario whose path loss with a line of sight has two slopes, with a breakpoint above the environment.

    Attributes
    ----------
    indoor_height : ``"client-height"``, or ``"by-floor"``
        Height of clients in buildings: `client_height_m` as for all, or by a floor drawn for each client
        (`floor_height_m`); clients outdoors have `client_height_m`.
    """

    los_db: ClassVar[tuple[float, float, float]]
    """With a line of sight: constant, dB per decade up to the breakpoint, and dB per decade of its square."""
    nlos_db: ClassVar[tuple[float, float, float, float]]
    """Without: constant, dB per decade of distance and of frequency, and dB that a metre of height gains."""

    indoor_height: Literal["client-height", "by-floor"] = "client-height"

    def _outdoors(
        self,
        distance_m: FloatArray,
        inside_m: FloatArray,
        indoor: BoolArray,
        client: IntArray,
        site: int | IntArray,
        streams: Streams,
    ) -> tuple[FloatArray, BoolArray]:
        if self.indoor_height == "client-height":
            return super()._outdoors(distance_m, inside_m, indoor, client, site, streams)
        height_m = np.where(indoor, floor_height_m(client, streams), self.client_height_m)
        loss, los = np.empty(distance_m.size), np.empty(distance_m.size, dtype=np.bool_)
        sites = np.broadcast_to(site, distance_m.shape)
        for height in np.unique(height_m).tolist():
            here = height_m == height
            law = self.model_copy(update={"client_height_m": height, "indoor_height": "client-height"})
            loss[here], los[here] = law._outdoors(
                distance_m[here], inside_m[here], indoor[here], client[here], sites[here], streams
            )
        return loss, los

    def breakpoint_m(self, environment_height_m: ArrayLike = 1.0) -> FloatArray:
        """Return the breakpoint distance d'_BP in metres, note 1 of table 7.4.1-1."""
        ground = np.asarray(environment_height_m, dtype=np.float64)
        heights = (self.base_height_m - ground) * (self.client_height_m - ground)
        return np.asarray(4 * heights * self.carrier_hz / SPEED_OF_LIGHT_M_PER_S)

    def los_loss_db(self, distance_m: ArrayLike, environment_height_m: ArrayLike = 1.0) -> FloatArray:
        """Return PL_1 up to the breakpoint and PL_2 beyond it."""
        constant, slope, knee = self.los_db
        ground, breakpoint_m = self._ground_m(distance_m), self.breakpoint_m(environment_height_m)
        slant = self._slant_m(ground)
        shift = constant + 20 * math.log10(self._carrier_ghz)
        height = self.base_height_m - self.client_height_m
        near = shift + slope * np.log10(slant)
        far = shift + 40 * np.log10(slant) - knee * np.log10(breakpoint_m**2 + height**2)
        return np.where(ground <= breakpoint_m, near, far)

    def nlos_loss_db(self, distance_m: ArrayLike, environment_height_m: ArrayLike = 1.0) -> FloatArray:
        constant, slope, by_carrier, by_height = self.nlos_db
        slant = self._slant_m(self._ground_m(distance_m))
        loss = constant + slope * np.log10(slant) + by_carrier * math.log10(self._carrier_ghz)
        loss = loss - by_height * (self.client_height_m - 1.5)
        return np.maximum(loss, self.los_loss_db(distance_m, environment_height_m))


class UrbanMicro(UrbanScenario):
    """UMi street canyon of TR 38.901: base stations below the roofs (at 10 m), clients from 10 m to 5 km away.

    Line of sight: sigma 4 dB, slope 21 dB per decade up to the breakpoint ``4 h'_BS h'_UT f / c`` and 40 beyond, with
    heights above an environment of 1 m. Without: sigma 7.82 dB.

    Examples
    --------
    >>> UrbanMicro().los_probability(np.array([18.0, 100.0])).round(3).tolist()  # 0.18 + 0.82 exp(-100 / 36) at 100 m
    [1.0, 0.231]
    """

    los_sigma_db: ClassVar[float] = 4.0
    nlos_sigma_db: ClassVar[float] = 7.82
    los_db: ClassVar = (32.4, 21.0, 9.5)
    nlos_db: ClassVar = (22.4, 35.3, 21.3, 0.3)

    carrier_hz: Carrier = 3.5e9
    base_height_m: Annotated[Metres, Field(gt=1, le=25)] = 10.0
    client_height_m: Annotated[Metres, Field(ge=1.5, le=22.5)] = 1.5

    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        """Return ``18/d + exp(-d/36) (1 - 18/d)``, and 1 up to 18 m."""
        return _street_probability(distance_m, 36.0)


class UrbanMacro(UrbanScenario):
    """UMa of TR 38.901: base stations above the roofs (at 25 m), clients from 10 m to 5 km away.

    Line of sight: sigma 4 dB, slope 22 dB per decade up to the breakpoint and 40 beyond. Without: sigma 6 dB. The
    environment's height is 1 m; for clients 13 m up and higher it is drawn for each client and site, as note 1 of table
    7.4.1-1 says, when a run is built (`los_loss_db` and `nlos_loss_db` take 1 m by default).

    Examples
    --------
    >>> UrbanMacro().los_probability(np.array([18.0, 100.0])).round(3).tolist()  # 0.18 + 0.82 exp(-100 / 63) at 100 m
    [1.0, 0.348]
    """

    los_sigma_db: ClassVar[float] = 4.0
    nlos_sigma_db: ClassVar[float] = 6.0
    los_db: ClassVar = (28.0, 22.0, 9.0)
    nlos_db: ClassVar = (13.54, 39.08, 20.0, 0.6)

    carrier_hz: Carrier = 2e9
    base_height_m: Annotated[Metres, Field(ge=22.5, le=150)] = 25.0
    client_height_m: Annotated[Metres, Field(ge=1.5, le=22.5)] = 1.5

    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        """Return ``(18/d + exp(-d/63) (1 - 18/d)) (1 + C' 5/4 (d/100)^3 exp(-d/150))``, and 1 up to 18 m."""
        far = np.maximum(np.asarray(distance_m, dtype=np.float64), 18.0)
        high = 1.0 + self._height_factor * 1.25 * (far / 100) ** 3 * np.exp(-far / 150)
        return np.where(far > 18.0, _street_probability(far, 63.0) * high, 1.0)

    def environment_height_m(self, distance_m: ArrayLike, u: ArrayLike) -> FloatArray:
        """Return h_E in metres, note 1 of table 7.4.1-1.

        It is 1 m with probability ``1 / (1 + C(d, h_UT))`` and else one of 12, 15, ..., h_UT - 1.5, each as likely.
        """
        distance, u = np.asarray(distance_m, dtype=np.float64), np.asarray(u, dtype=np.float64)
        bend = np.where(distance > 18.0, 1.25 * (distance / 100) ** 3 * np.exp(-distance / 150), 0.0)
        low = 1.0 / (1.0 + self._height_factor * bend)
        choices = max(1, math.floor((self.client_height_m - 1.5 - 12.0) / 3.0) + 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            index = np.where(u > low, np.floor((u - low) / (1.0 - low) * choices), 0.0)
        return np.where(u > low, 12.0 + 3.0 * np.minimum(index, choices - 1), 1.0)

    @property
    def _height_factor(self) -> float:
        """C' of table 7.4.2-1, which is also the factor of C in note 1 of table 7.4.1-1."""
        return float(max(0.0, (self.client_height_m - 13.0) / 10.0) ** 1.5)

    def _drawn_db(
        self, distance_m: FloatArray, client: IntArray, site: int | IntArray, streams: Streams
    ) -> tuple[FloatArray, FloatArray]:
        height_m: ArrayLike = 1.0
        if self._height_factor:
            height_m = self.environment_height_m(distance_m, streams.uniform("environment-height", client, site))
        return self.los_loss_db(distance_m, height_m), self.nlos_loss_db(distance_m, height_m)


def _street_probability(distance_m: ArrayLike, scale_m: float) -> FloatArray:
    near = 18.0 / np.maximum(np.asarray(distance_m, dtype=np.float64), 18.0)
    return near + np.exp(-18.0 / near / scale_m) * (1.0 - near)
