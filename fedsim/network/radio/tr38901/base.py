"""3GPP TR 38.901 (V16.1.0), clause 7.4: the common part of its scenarios.

A scenario gives the probability of a line of sight (table 7.4.2-1), the path loss with and without one and the
standard deviation of the shadowing of each (table 7.4.1-1). Which clients have a line of sight is drawn once for
each client and site from the stream ``line-of-sight``.

Carriers lie between 0.5 and 100 GHz (30 GHz in rural macro cells); others are refused, as are antenna heights
outside a scenario's range; the urban tables were made for base stations at one height, and here take others of their
kind. At distances below a scenario's least one the loss is that of the least distance; beyond
its greatest one the formula is continued. c is taken as 3e8 m/s, as notes 1 and 5 of the table prescribe.
"""

from abc import abstractmethod
from typing import Annotated, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.network.radio.contracts import LargeScale
from fedsim.registry import Component
from fedsim.streams import Streams
from fedsim.units import Hertz, Metres

SPEED_OF_LIGHT_M_PER_S: Final = 3.0e8
"""As table 7.4.1-1 rounds it."""

Carrier = Annotated[Hertz, Field(ge=0.5e9, le=100e9)]


class Scenario38901(Component):
    """A scenario of table 7.4.1-1: its formulas are functions of the ground distance in metres.

    Attributes
    ----------
    carrier_hz : carrier frequency
    base_height_m, client_height_m : heights of the two antennas
    """

    los_sigma_db: ClassVar[float]
    nlos_sigma_db: ClassVar[float]
    least_distance_m: ClassVar[float]

    carrier_hz: Carrier
    base_height_m: Metres
    client_height_m: Metres

    @abstractmethod
    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        """Return the probability of a line of sight, table 7.4.2-1."""

    @abstractmethod
    def los_loss_db(self, distance_m: ArrayLike) -> FloatArray:
        """Return the path loss in dB with a line of sight, table 7.4.1-1."""

    @abstractmethod
    def nlos_loss_db(self, distance_m: ArrayLike) -> FloatArray:
        """Return the path loss in dB without a line of sight, table 7.4.1-1."""

    def loss_db(self, distance_m: ArrayLike) -> FloatArray:
        """Return the mean outdoor path loss in dB over having a line of sight or not."""
        share = self.los_probability(distance_m)
        return share * self.los_loss_db(distance_m) + (1.0 - share) * self.nlos_loss_db(distance_m)

    def sigma_db(self, los: ArrayLike) -> FloatArray:
        """Return sigma of the shadowing in dB with (True) and without a line of sight."""
        return np.where(los, self.los_sigma_db, self.nlos_sigma_db)

    def draw(
        self, distance_m: FloatArray, site: int | IntArray, streams: Streams, client: IntArray | None = None
    ) -> LargeScale:
        ids = np.arange(distance_m.size) if client is None else client
        los = self._has_line_of_sight(self.los_probability(distance_m), ids, site, streams)
        loss = np.where(los, self.los_loss_db(distance_m), self.nlos_loss_db(distance_m))
        return LargeScale(loss, self.sigma_db(los), los)

    def _has_line_of_sight(
        self, probability: FloatArray, client: IntArray, site: int | IntArray, streams: Streams
    ) -> BoolArray:
        return np.asarray(streams.uniform("line-of-sight", client, site) < probability)

    def _ground_m(self, distance_m: ArrayLike) -> FloatArray:
        return np.maximum(np.asarray(distance_m, dtype=np.float64), self.least_distance_m)

    def _slant_m(self, ground_m: FloatArray) -> FloatArray:
        return np.asarray(np.hypot(ground_m, self.base_height_m - self.client_height_m))

    @property
    def _carrier_ghz(self) -> float:
        return self.carrier_hz / 1e9
