"""When clients vanish: lost connections, empty batteries, closed lids.

Streams: ``dropout`` by (client, round).
"""

from typing import ClassVar

import numpy as np
from pydantic import PositiveFloat

from fedsim.devices.base import FloatArray, IntArray
from fedsim.parts import Catalogue, Part
from fedsim.streams import Streams

DROPOUTS = Catalogue(
    "dropout law",
    "fedsim.dropouts",
    ("time_to_dropout_s",),
    {"never": "fedsim.devices.dropout:Never", "hazard": "fedsim.devices.dropout:Hazard"},
    attributes=("possible",),
)


class Never(Part):
    """Nobody vanishes."""

    possible: ClassVar[bool] = False

    def time_to_dropout_s(self, client: IntArray, round_: int, streams: Streams) -> FloatArray:
        """Return `inf` for everybody."""
        return np.full(np.shape(client), np.inf)


class Hazard(Part):
    """A constant hazard: a participation of t seconds survives with probability ``exp(-rate_per_s * t)``.

    Attributes
    ----------
    rate_per_s : dropouts per second of participation
    """

    possible: ClassVar[bool] = True

    rate_per_s: PositiveFloat

    def time_to_dropout_s(self, client: IntArray, round_: int, streams: Streams) -> FloatArray:
        """Return an exponential time with mean ``1 / rate_per_s`` for each client in this round."""
        return -np.log1p(-streams.uniform("dropout", client, round_)) / self.rate_per_s
