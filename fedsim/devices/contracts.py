"""Interfaces between devices and the rounds that use them: compute times, availability, dropout.

A key of randomness is called `draw`: the same client and the same draw give the same random numbers.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, Protocol

import numpy as np

from fedsim.answers import (
    AnswerError,
    Contract,
    Flag,
    Free,
    Given,
    Mask,
    Number,
    Numbers,
    OneOf,
    OptionalOf,
    PartOf,
    in_words,
    same_shape,
    shaped,
)
from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.capabilities import Capable
from fedsim.devices.tracking import AvailabilityTracker, PlainTracker
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams

Kind = Literal["timed", "per-draw"]
_NEXT_DRAW: Final = 2**40
"""Distance from a draw of availability to its repetition; no round has a number as high."""


class ComputeTimes(Protocol):
    """Durations of local work on each of the K devices of one run.

    Every result is a function of its arguments and of the run's seed alone.

    Examples
    --------
    >>> class Alike:
    ...     def duration_s(self, client, draw, samples):
    ...         return samples / 50.0
    ...     def expected_s(self, samples):
    ...         return samples / 50.0
    >>> times: ComputeTimes = Alike()
    >>> times.duration_s(np.array([4, 7]), draw=1, samples=np.array([200.0, 25.0])).tolist()
    [4.0, 0.5]
    """

    def duration_s(self, client: IntArray, draw: int, samples: FloatArray) -> FloatArray:
        """Return the duration of each client's work in seconds, >= 0, shape (n,).

        Parameters
        ----------
        client : ids in 0..K-1, shape (n,)
        draw : key of the random numbers; a synchronous server's is the number of the round, from 1
        samples : samples that each client passes through its model, >= 0, shape (n,)
        """
        ...

    def expected_s(self, samples: FloatArray) -> FloatArray:
        """Return the mean duration over all draws for every client, in seconds, shape (K,).

        Parameters
        ----------
        samples : samples that each client passes through its model, >= 0, shape (K,)
        """
        ...


COMPUTE_TIMES_OF_A_RUN: Final = Contract(
    "compute times",
    ComputeTimes,
    {
        "duration_s": Numbers(same_shape("client"), least=0, infinite=True),
        "expected_s": Numbers(same_shape("samples"), least=0, infinite=True),
    },
)


class ComputeTime(Capable, Protocol):
    """A scenario's law of compute times: settings that build the times of one run.

    Attributes
    ----------
    requires : of ``"samples"`` and ``"flops"`` what durations depend on

    Examples
    --------
    >>> from typing import ClassVar
    >>> from fedsim import Component
    >>> from fedsim.devices import Rate
    >>> from fedsim.run_setup import RunSetup
    >>> from fedsim.streams import Streams
    >>> class Halved(Component):
    ...     requires: ClassVar = frozenset({"samples"})
    ...     samples_per_s: float
    ...     def build(self, run):
    ...         return Rate(samples_per_s=self.samples_per_s / 2, spread_sigma=0).build(run)
    >>> Halved(samples_per_s=100.0).build(RunSetup(2, Streams(0))).expected_s(np.array([200.0, 50.0])).tolist()
    [4.0, 1.0]
    """

    def build(self, run: RunSetup) -> ComputeTimes:
        """Return the compute times of one run.

        Parameters
        ----------
        run : what a part may read of its run
        """
        ...


class Availability(ABC):
    """Reachability of the K clients of one run, now and for how long.

    Every result is a function of its arguments and of the run's seed alone: no call changes what another one returns.
    The caller stores the draw. It asks for a round's start with the number of the round as the draw, and uses the draw
    that `next_s` returns in all calls about that round.

    Attributes
    ----------
    kind : ``"timed"`` if clients come and go with time, whatever the draw; ``"per-draw"`` if the state of each client
        is drawn anew with each draw and holds as long as that draw does
    retry_s : seconds between a draw without a client that can take part and the next draw; only for ``"per-draw"``

    Examples
    --------
    >>> class HalfDays(Availability):
    ...     kind = "timed"
    ...     def available(self, client, time_s, draw):
    ...         return np.full(client.size, time_s % 86400 < 43200)
    ...     def next_s(self, time_s, draw, client=None):
    ...         return time_s if time_s % 86400 < 43200 else (time_s // 86400 + 1) * 86400.0, draw
    ...     def part(self, client):
    ...         return self
    >>> HalfDays().available(np.array([0, 1]), time_s=50_000.0, draw=1).tolist()
    [False, False]
    >>> HalfDays().next_s(50_000.0, draw=1)
    (86400.0, 1)
    """

    kind: Kind
    retry_s: float = math.inf

    @abstractmethod
    def available(self, client: IntArray, time_s: float, draw: int) -> BoolArray:
        """Return whether each client can be reached at an instant, shape (n,).

        Parameters
        ----------
        client : ids in 0..K-1, shape (n,)
        time_s : instant, >= 0
        draw : key of the random numbers that holds at the instant, from 1
        """

    @abstractmethod
    def next_s(self, time_s: float, draw: int, client: IntArray | None = None) -> tuple[float, int]:
        """Return the first instant from ``time_s`` on with an available client, and the draw that holds then.

        Parameters
        ----------
        time_s : instant, >= 0
        draw : key of the random numbers that holds at ``time_s``, from 1
        client : ids of the only clients that count, shape (n,); None for all
            With ids given, a draw is not repeated: the draw returned is ``draw``.

        Returns
        -------
        instant : `inf` if there is none
        draw : ``draw``, or the key of a repeated draw
        """

    @abstractmethod
    def part(self, client: IntArray) -> "Availability":
        """Return the availability of some of the clients as a crowd of their own, as an edge server sees them.

        A timed law says the same of a client in the whole and in the part. A draw without an available client of the
        part is repeated for the part alone.

        Parameters
        ----------
        client : ids in ascending order, shape (n,)
        """

    def tracker(self, client: IntArray) -> AvailabilityTracker:
        """Return what keeps the availability of some clients up to date between looks.

        The plain one asks `available` for each client at each instant, or where clients are available by draws at each
        draw. A law that knows the instants of changes returns a faster one.

        Parameters
        ----------
        client : ids in ascending order, shape (n,)
        """
        return PlainTracker(self.available, client, "draw" if self.kind == "per-draw" else "instant")

    def redraw(self, draw: int) -> int:
        """Return the key of the draw after one of which no client can take part; only for ``"per-draw"``.

        Parameters
        ----------
        draw : key of the draw that is over
        """
        return draw + _NEXT_DRAW

    def leaves_after_s(self, client: IntArray, time_s: float, draw: int, task_s: FloatArray) -> FloatArray:
        """Return the seconds from an instant until each client leaves, >= 0, shape (n,); `inf` if it stays.

        Parameters
        ----------
        client : ids of clients that are available at the instant, shape (n,)
        time_s : start of the task
        draw : key of the random numbers that holds at the instant, from 1
        task_s : duration of each client's task, shape (n,); `inf` where it is unknown or has no end
            A law that returns `inf` for an unknown duration is called again at the end of the task, with the duration.
            The client is lost at that instant if it has left before.
        """
        return np.full(np.shape(client), np.inf)

    def earliest_s(self, client: IntArray, time_s: float, draw: int) -> FloatArray:
        """Return the first instant from ``time_s`` on at which each client may be available in this draw, shape (n,).

        It is ``time_s`` for an available client, and later or `inf` for another one.

        Parameters
        ----------
        client : ids in 0..K-1, shape (n,)
        time_s : instant, >= 0
        draw : key of the random numbers that holds at the instant, from 1
        """
        return np.where(self.available(client, time_s, draw), time_s, np.inf)


@dataclass(frozen=True)
class _Opening:
    """The first instant with an available client, and the draw that holds then."""

    def __call__(self, answer: object, given: Given) -> tuple[float, int]:
        if not (isinstance(answer, tuple | list) and len(answer) == 2):
            raise AnswerError(in_words(answer), "a pair of an instant and a draw")
        least_s = float(given["time_s"])
        return Number(least=least_s, infinite=True)(answer[0], given), Number(least=1, whole=True)(answer[1], given)


@dataclass(frozen=True)
class _OfSomeClients:
    def __call__(self, answer: object, given: Given) -> Availability:
        found: Availability = PartOf(Availability, AVAILABILITY)(answer, given)
        return found


_IN_SECONDS: Final = Numbers(same_shape("client"), least=0, infinite=True)
AVAILABILITY: Final = Contract(
    "availability",
    Availability,
    {
        "kind": OneOf(("timed", "per-draw")),
        "retry_s": Number(least=0, above=True, infinite=True),
        "available": Mask(same_shape("client")),
        "next_s": _Opening(),
        "leaves_after_s": _IN_SECONDS,
        "earliest_s": _IN_SECONDS,
        "redraw": Number(least=1, whole=True),
        "part": _OfSomeClients(),
    },
    inherited=("tracker", "earliest_s"),
)


class AvailabilityModel(Protocol):
    """A scenario's law of availability: settings that build the availability of one run.

    Attributes
    ----------
    may_leave : whether a client may leave during a participation; otherwise `Availability.leaves_after_s` is not called

    Examples
    --------
    >>> from fedsim.devices import Bernoulli
    >>> from fedsim.run_setup import RunSetup
    >>> from fedsim.streams import Streams
    >>> half: AvailabilityModel = Bernoulli(probability=0.5)
    >>> half.may_leave
    False
    >>> share = half.build(RunSetup(10_000, Streams(0))).available(np.arange(10_000), time_s=0.0, draw=1).mean()
    >>> bool(abs(share - 0.5) < 0.02)
    True
    """

    may_leave: ClassVar[bool]

    def build(self, run: RunSetup) -> Availability:
        """Return the availability of one run.

        Parameters
        ----------
        run : what a part may read of its run
        """
        ...


class Dropout(ABC):
    """A law of the instant at which a client vanishes during a participation.

    A law of your own derives from `fedsim.Component` and from this class.

    Stream: ``dropout`` by (client, draw).

    Attributes
    ----------
    possible : whether a client can drop out at all; otherwise no time is drawn

    Examples
    --------
    >>> from fedsim import Component
    >>> from fedsim.streams import Streams
    >>> class AfterAMinute(Component, Dropout):
    ...     def time_to_dropout_s(self, client, draw, streams, phases_s=None):
    ...         return np.full(client.size, 60.0)
    >>> AfterAMinute().time_to_dropout_s(np.array([0, 3]), 1, Streams(0)).tolist()
    [60.0, 60.0]
    """

    possible: ClassVar[bool] = True

    @abstractmethod
    def time_to_dropout_s(
        self, client: IntArray, draw: int, streams: Streams, phases_s: FloatArray | None = None
    ) -> FloatArray:
        """Return the seconds from the start of its participation until each client vanishes, shape (n,); `inf`: never.

        Parameters
        ----------
        client : ids in 0..K-1, shape (n,)
        draw : key of the random numbers; a synchronous server's is the number of the round, from 1
        streams : random streams of the run
        phases_s : planned seconds of downlink, compute and uplink, shape (3, n)
            Only laws with `phase_hazards` need the first two rows. The last row does not matter.
        """

    def phase_hazards(self) -> tuple[float, float, float] | None:
        """Return the dropouts per second of downlink, compute and uplink; None if the hazard ignores the phases.

        With hazards by phase, a client vanishes when its summed hazard reaches its `endurance`. The sum is taken on the
        clock where the duration of a phase is unknown in advance, on shared media.
        """
        return None

    def endurance(self, client: IntArray, draw: int, streams: Streams) -> FloatArray:
        """Return an exponential number with mean 1 for each client: the summed hazard that it survives, shape (n,).

        Parameters
        ----------
        client : ids in 0..K-1, shape (n,)
        draw : key of the random numbers, from 1
        streams : random streams of the run
        """
        return -np.log1p(-streams.uniform("dropout", client, draw))


COMPUTE_TIME: Final = Contract("compute time", ComputeTime, {"build": PartOf(object, COMPUTE_TIMES_OF_A_RUN)})
AVAILABILITY_MODEL: Final = Contract("availability model", AvailabilityModel, {"build": Free()})
DROPOUT: Final = Contract(
    "dropout law",
    Dropout,
    {
        "possible": Flag(),
        "time_to_dropout_s": _IN_SECONDS,
        "phase_hazards": OptionalOf(Numbers(shaped(3), least=0)),
        "endurance": Numbers(same_shape("client"), least=0),
    },
)
