"""Availability without memory: clients that are always available, or available in a draw with a fixed probability.

Streams: ``availability-toss`` by (client, draw); ``availability-again`` by (client, draw) and ``availability-retry`` by
draw, for draws without an available client, with a key made of the lowest id of a part of the crowd where one is asked
apart.
"""

import math
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, PositiveFloat

from fedsim.arrays import BoolArray, IntArray
from fedsim.devices.contracts import Availability, Kind
from fedsim.registry import Component, Registry
from fedsim.streams import Streams

AVAILABILITIES = Registry(
    "availability",
    "fedsim.availabilities",
    ("build",),
    {
        "always": "fedsim.devices.availability.independent:Always",
        "bernoulli": "fedsim.devices.availability.independent:Bernoulli",
        "markov": "fedsim.devices.availability.on_off:Markov",
        "diurnal": "fedsim.devices.availability.diurnal:Diurnal",
        "flash": "fedsim.devices.availability.flash:Flash",
        "traces": "fedsim.devices.availability.traces:Traces",
    },
    attributes=("may_leave",),
)


class Always(Component):
    """Every client is always available."""

    may_leave: ClassVar[bool] = False

    def build(self, clients: int, streams: Streams) -> "AlwaysAvailable":
        """Return an availability without absences."""
        return AlwaysAvailable()


class AlwaysAvailable(Availability):
    """The availability of clients that never leave."""

    kind: Kind = "timed"

    def available(self, client: IntArray, time_s: float, draw: int) -> BoolArray:
        """Return true for every client, shape (n,)."""
        return np.ones(np.shape(client), dtype=np.bool_)

    def next_s(self, time_s: float, draw: int, client: IntArray | None = None) -> tuple[float, int]:
        """Return the instant itself, or `inf` where no clients are given."""
        return time_s if client is None or client.size else math.inf, draw

    def part(self, client: IntArray) -> "AlwaysAvailable":
        """Return the availability itself."""
        return self


class Bernoulli(Component):
    """Each client is available in a round with a fixed probability, independent of other rounds, and then stays.

    When the draw of a round shows no available client, the server draws again after ``retry_s``, and so on. The number
    of draws that this takes is drawn at once, from the geometric law, and the available clients from the law of a draw
    given that it shows one: among the clients in order of their ids the first available one has a truncated geometric
    place, those after it are independent.

    Attributes
    ----------
    probability : of being available in a round
    retry_s : seconds until the server draws again for all clients
    """

    may_leave: ClassVar[bool] = False

    probability: Annotated[float, Field(gt=0, le=1)]
    retry_s: PositiveFloat = 1.0

    def build(self, clients: int, streams: Streams) -> "BernoulliAvailability":
        """Return the availability of one run."""
        return BernoulliAvailability(np.arange(clients, dtype=np.int64), self.probability, self.retry_s, streams)


class BernoulliAvailability(Availability):
    """The availability of a `Bernoulli` law.

    A draw always shows an available client. Where its first try does not, it holds from the instant on that `next_s`
    returns.

    Parameters
    ----------
    client : ids of the crowd, ascending, shape (n,)
    probability : of being available in a draw
    retry_s : seconds between two tries
    streams : random streams of the run
    """

    kind: Kind = "per-draw"

    def __init__(self, client: IntArray, probability: float, retry_s: float, streams: Streams) -> None:
        self.client, self.probability, self.retry_s = client, probability, retry_s
        self._streams = streams
        self._first_of: tuple[int, int] = (0, -1)

    def available(self, client: IntArray, time_s: float, draw: int) -> BoolArray:
        """Return whether each client is available in the first try of this draw that shows one, shape (n,)."""
        first = self._first_of_retry(draw)
        if first < 0:
            return self._streams.uniform("availability-toss", client, draw) < self.probability
        later = self._streams.uniform("availability-again", client, draw) < self.probability
        return np.asarray((client == first) | ((client > first) & later))

    def next_s(self, time_s: float, draw: int, client: IntArray | None = None) -> tuple[float, int]:
        """Return the instant of the first try that shows an available client: now, or some tries later."""
        if client is not None:
            return time_s if self.available(client, time_s, draw).any() else math.inf, draw
        if self._first_of_retry(draw) < 0:
            return time_s, draw
        log_none = self.client.size * math.log1p(-self.probability)
        tries = max(1.0, math.ceil(math.log(self._retry_number(1, draw)) / log_none))
        return time_s + self.retry_s * tries, draw

    def part(self, client: IntArray) -> "BernoulliAvailability":
        """Return the availability of some of the clients, for which a draw without one of them is repeated."""
        return BernoulliAvailability(client, self.probability, self.retry_s, self._streams)

    def _first_of_retry(self, draw: int) -> int:
        """Return the lowest id of the first try that shows an available client, or -1 if that is the very first try."""
        if self._first_of[0] != draw:
            first = -1
            if not np.any(self._streams.uniform("availability-toss", self.client, draw) < self.probability):
                log_absent = math.log1p(-self.probability)
                u, size = self._retry_number(0, draw), self.client.size
                place = math.floor(math.log1p(u * math.expm1(size * log_absent)) / log_absent)
                first = int(self.client[min(place, size - 1)])
            # Kept for the last draw alone, to save its numbers: it is asked about several times in a row.
            self._first_of = draw, first
        return self._first_of[1]

    def _retry_number(self, which: int, draw: int) -> float:
        """Return a uniform number for the further tries of a draw: clients (0) or number of tries (1)."""
        return float(self._streams.uniform("availability-retry", 2 * int(self.client[0]) + which, draw))
