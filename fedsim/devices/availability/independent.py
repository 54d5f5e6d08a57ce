"""Who can be reached when, for laws that need no memory of comings and goings.

Streams: ``availability-toss`` by (client, round); ``availability-again`` by (client, round) and
``availability-retry`` by round, for rounds whose first toss shows nobody, with a key made of the lowest id of a part
of the crowd where one is asked apart.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, PositiveFloat

from fedsim.arrays import BoolArray, FloatArray, IntArray
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
    """Everybody is always there."""

    may_leave: ClassVar[bool] = False

    def build(self, clients: int, streams: Streams) -> "AlwaysAvailable":
        """Return a presence without absences."""
        return AlwaysAvailable()


@dataclass(frozen=True)
class AlwaysAvailable:
    """The presence of clients that never leave."""

    def available(self, client: IntArray, time_s: float, round_: int) -> BoolArray:
        """Return true for everybody."""
        return np.ones(np.shape(client), dtype=np.bool_)

    def leaves_after_s(self, client: IntArray, time_s: float, round_: int, task_s: FloatArray) -> FloatArray:
        """Return `inf` for everybody."""
        return np.full(np.shape(client), np.inf)

    def opens_s(self, time_s: float, round_: int, client: IntArray | None = None) -> float:
        """Return the instant itself, or `inf` where there is nobody to look at."""
        return time_s if client is None or client.size else math.inf

    def part(self, client: IntArray) -> Self:
        """Return the presence itself."""
        return self


class Bernoulli(Component):
    """Each client is there in a round with a fixed probability, whatever it did before, and then stays.

    When the toss shows nobody, the server tosses again after ``retry_s``, and so on. How many tosses that takes
    is drawn at once, from the geometric law, and who is there then from the toss given that it shows somebody:
    among the clients in order of their ids the first present one has a truncated geometric place, those after
    it are independent.

    Attributes
    ----------
    probability : of being there in a round
    retry_s : how long the server waits before it asks everybody again
    """

    may_leave: ClassVar[bool] = False

    probability: Annotated[float, Field(gt=0, le=1)]
    retry_s: PositiveFloat = 1.0

    def build(self, clients: int, streams: Streams) -> "BernoulliAvailability":
        """Return who is there in one run with this many clients."""
        return BernoulliAvailability(np.arange(clients, dtype=np.int64), self.probability, self.retry_s, streams)


class BernoulliAvailability:
    """The presence of a `Bernoulli` law; `client` holds the ids of the crowd, ascending."""

    def __init__(self, client: IntArray, probability: float, retry_s: float, streams: Streams) -> None:
        self.client, self.probability, self.retry_s = client, probability, retry_s
        self._streams = streams
        self._round, self._first = 0, 0

    def available(self, client: IntArray, time_s: float, round_: int) -> BoolArray:
        """Return the toss of each client in this round: the first one that shows anybody at all."""
        first = self._first_of_retry(round_)
        if first < 0:
            return self._streams.uniform("availability-toss", client, round_) < self.probability
        later = self._streams.uniform("availability-again", client, round_) < self.probability
        return np.asarray((client == first) | ((client > first) & later))

    def leaves_after_s(self, client: IntArray, time_s: float, round_: int, task_s: FloatArray) -> FloatArray:
        """Return `inf` for everybody: whoever is there stays for the round."""
        return np.full(np.shape(client), np.inf)

    def opens_s(self, time_s: float, round_: int, client: IntArray | None = None) -> float:
        """Return the instant itself if the first toss shows anybody, else that of the first toss that does.

        Of some clients only, the toss of the round is not repeated: who is not there now does not come in it.
        """
        if client is not None:
            return time_s if self.available(client, time_s, round_).any() else math.inf
        if self._first_of_retry(round_) < 0:
            return time_s
        log_nobody = self.client.size * math.log1p(-self.probability)
        u = self._retry_luck(1, round_)
        return time_s + self.retry_s * max(1.0, math.ceil(math.log(u) / log_nobody))

    def part(self, client: IntArray) -> "BernoulliAvailability":
        """Return the presence of some of the clients, who are tossed for again when none of them is there."""
        return BernoulliAvailability(client, self.probability, self.retry_s, self._streams)

    def _first_of_retry(self, round_: int) -> int:
        """Return the lowest id of a repeated toss that shows somebody, or -1 if the first toss does."""
        if self._round != round_:
            toss = self._streams.uniform("availability-toss", self.client, round_)
            self._round, self._first = round_, -1
            if not np.any(toss < self.probability):
                log_absent = math.log1p(-self.probability)
                u, size = self._retry_luck(0, round_), self.client.size
                place = math.floor(math.log1p(u * math.expm1(size * log_absent)) / log_absent)
                self._first = int(self.client[min(place, size - 1)])
        return self._first

    def _retry_luck(self, which: int, round_: int) -> float:
        """Return a number for the retries of a round, for who is there (0) or how many it takes (1)."""
        return float(self._streams.uniform("availability-retry", 2 * int(self.client[0]) + which, round_))
