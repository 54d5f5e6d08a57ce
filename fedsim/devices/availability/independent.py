"""Availability without memory: clients that are always available, or available in a draw with a fixed probability.

Streams: ``availability-toss`` by (client, draw); ``availability-again`` by (client, draw) and ``availability-retry`` by
draw, for draws without an available client, with a key made of the lowest id of a part of the crowd where one is asked
apart.
"""

import math
from typing import Annotated, ClassVar, Final

import numpy as np
from pydantic import Field

from fedsim.arrays import BoolArray, IntArray
from fedsim.devices.contracts import Availability, Kind
from fedsim.devices.tracking import AvailabilityTracker, PlainTracker
from fedsim.registry import Component, Registry
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.units import LONGEST_S, Bound, Positive, Seconds

_REPEATED: Final = 2**62
"""Distance from a draw of a `Bernoulli` law to its repetition that shows an available client."""

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
    """Every client is always available.

    Examples
    --------
    >>> from fedsim.run_setup import RunSetup
    >>> from fedsim.streams import Streams
    >>> Always().build(RunSetup(3, Streams(0))).available(np.array([0, 2]), time_s=1e6, draw=1).tolist()
    [True, True]
    """

    may_leave: ClassVar[bool] = False

    def build(self, run: RunSetup) -> "AlwaysAvailable":
        return AlwaysAvailable()


class AlwaysAvailable(Availability):
    kind: Kind = "timed"

    def available(self, client: IntArray, time_s: float, draw: int) -> BoolArray:
        return np.ones(np.shape(client), dtype=np.bool_)

    def next_s(self, time_s: float, draw: int, client: IntArray | None = None) -> tuple[float, int]:
        """Return the instant itself, or `inf` where no clients are given."""
        return time_s if client is None or client.size else math.inf, draw

    def tracker(self, client: IntArray) -> AvailabilityTracker:
        return PlainTracker(self.available, client, "run")

    def part(self, client: IntArray) -> "AlwaysAvailable":
        return self


class Bernoulli(Component):
    """Each client is available in a round with a fixed probability, independent of other rounds, and then stays.

    When the draw of a round shows no available client, the server draws again after ``retry_s``, and so on. The number
    of these draws comes at once, from the geometric law. The available clients come from the law of a draw given that
    it shows one: among the clients in order of their ids the first available one has a truncated geometric place, and
    those after it are independent.

    Attributes
    ----------
    probability : of being available in a round
    retry_s : seconds until the server draws again for all clients

    Examples
    --------
    >>> from fedsim.run_setup import RunSetup
    >>> from fedsim.streams import Streams
    >>> rare = Bernoulli(probability=0.01, retry_s=5.0).build(RunSetup(2, Streams(0)))
    >>> opens_s, draw = rare.next_s(0.0, draw=1)
    >>> opens_s > 0, opens_s % 5.0, bool(rare.available(np.array([0, 1]), opens_s, draw).any())
    (True, 0.0, True)
    """

    may_leave: ClassVar[bool] = False

    probability: Annotated[float, Field(gt=0, le=1)]
    retry_s: Annotated[Positive[Seconds], Bound(1e-3, LONGEST_S)] = 1.0

    def build(self, run: RunSetup) -> "BernoulliAvailability":
        return BernoulliAvailability(np.arange(run.clients), self.probability, self.retry_s, run.streams)


class BernoulliAvailability(Availability):
    kind: Kind = "per-draw"

    def __init__(self, client: IntArray, probability: float, retry_s: float, streams: Streams) -> None:
        self.client, self.probability, self.retry_s = client, probability, retry_s
        self._streams = streams

    def available(self, client: IntArray, time_s: float, draw: int) -> BoolArray:
        if draw < _REPEATED:
            return self._streams.uniform("availability-toss", client, draw) < self.probability
        first = self._first_of_repeated(draw - _REPEATED)
        later = self._streams.uniform("availability-again", client, draw - _REPEATED) < self.probability
        return np.asarray((client == first) | ((client > first) & later))

    def next_s(self, time_s: float, draw: int, client: IntArray | None = None) -> tuple[float, int]:
        """Return the instant itself if the draw shows an available client, else that of the repeated draw."""
        if client is not None:
            return time_s if self.available(client, time_s, draw).any() else math.inf, draw
        if draw >= _REPEATED or self.available(self.client, time_s, draw).any():
            return time_s, draw
        log_none = self.client.size * math.log1p(-self.probability)
        tries = max(1.0, math.ceil(math.log(self._repeated_number(1, draw)) / log_none))
        return time_s + self.retry_s * tries, draw + _REPEATED

    def redraw(self, draw: int) -> int:
        return super().redraw(draw % _REPEATED)

    def part(self, client: IntArray) -> "BernoulliAvailability":
        """Return the availability of some of the clients, for which a draw without one of them is repeated."""
        return BernoulliAvailability(client, self.probability, self.retry_s, self._streams)

    def _first_of_repeated(self, draw: int) -> int:
        """Return the lowest id that is available in the repetition of a draw."""
        log_absent = math.log1p(-self.probability)
        u, size = self._repeated_number(0, draw), self.client.size
        place = math.floor(math.log1p(u * math.expm1(size * log_absent)) / log_absent)
        return int(self.client[min(place, size - 1)])

    def _repeated_number(self, which: int, draw: int) -> float:
        """Return a uniform number for the repetition of a draw: clients (0) or number of tries (1)."""
        return float(self._streams.uniform("availability-retry", 2 * int(self.client[0]) + which, draw))
