"""What the rest of fedsim asks of devices."""

from typing import ClassVar, Protocol, Self, runtime_checkable

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.streams import Streams


class ComputeTimes(Protocol):
    """How long local work takes on each of the K devices of one run."""

    def duration_s(self, client: IntArray, round_: int, samples: FloatArray) -> FloatArray:
        """Return how long each client's work takes in this round, shape (n,).

        Parameters
        ----------
        client : ids in 0..K-1, shape (n,)
        round_ : int, from 1
        samples : how many samples each passes through its model, >= 0, shape (n,)
        """
        ...

    def expected_s(self, samples: FloatArray) -> FloatArray:
        """Return the mean duration for every client, given every client's samples, both of shape (K,)."""
        ...


class ComputeTime(Protocol):
    """A scenario's law of compute times: settings that build the times of one run.

    Attributes
    ----------
    uses_samples : whether it matters how many samples a client works through
    uses_flops : whether it matters how many operations a sample takes
    """

    uses_flops: ClassVar[bool]

    @property
    def uses_samples(self) -> bool:
        """Whether it matters how many samples a client works through."""
        ...

    def build(self, clients: int, streams: Streams, flops_per_sample: float | None = None) -> ComputeTimes:
        """Return the times of one run for this many clients.

        Parameters
        ----------
        clients : K
        streams : the luck of the run
        flops_per_sample : floating-point operations to train on one sample; None where nobody counts them
        """
        ...


class Availability(Protocol):
    """Which of the K clients of one run can be reached, and for how long.

    Every answer is a function of the client, the instant, the round and the run's seed alone.
    """

    def available(self, client: IntArray, time_s: float, round_: int) -> BoolArray:
        """Return whether each client can be reached at an instant of a round, shape (n,)."""
        ...

    def leaves_after_s(self, client: IntArray, time_s: float, round_: int, task_s: FloatArray) -> FloatArray:
        """Return how long after an instant at which it is there each client leaves, shape (n,).

        Parameters
        ----------
        client : ids in 0..K-1, shape (n,)
        time_s : start of the task
        round_ : int, from 1
        task_s : how long each client's task would take, shape (n,); `inf` where it would never be done or nobody knows
            A client of which nothing is known then is asked about again at the end of its task, and is lost at that
            instant if the answer is that it has left before.

        Returns
        -------
        array of shape (n,), seconds >= 0; `inf` for clients that do not leave
        """
        ...

    def opens_s(self, time_s: float, round_: int, client: IntArray | None = None) -> float:
        """Return the first instant from ``time_s`` on at which anybody is available; `inf` if there is none.

        Parameters
        ----------
        time_s : now
        round_ : int, from 1
        client : ids, shape (n,): look at these only, as they will be in this round; None for the whole crowd
        """
        ...

    def part(self, client: IntArray) -> Self:
        """Return the presence of some of the clients, ids ascending, as a crowd of their own.

        It says the same of each of them as long as somebody of the whole crowd and of the part is there; what it is
        asked about others has no meaning. A round of it opens when somebody of the part is there.
        """
        ...


@runtime_checkable
class TimedAvailability(Availability, Protocol):
    """A presence that changes with time and says when."""

    def state(self, client: IntArray, time_s: float) -> tuple[BoolArray, FloatArray]:
        """Return whether each client is there at an instant, and how long until that changes, both of shape (n,)."""
        ...


@runtime_checkable
class DrawnAvailability(Availability, Protocol):
    """A presence that is drawn for a round, and again if it is of no use; ``round_`` may be any number that is new.

    Attributes
    ----------
    retry_s : how long the server waits before everybody is asked again
    """

    retry_s: float


class AvailabilityModel(Protocol):
    """A scenario's law of availability: settings that build the presence of one run.

    Attributes
    ----------
    may_leave : whether a client may leave in the middle of a participation
    """

    may_leave: ClassVar[bool]

    def build(self, clients: int, streams: Streams) -> Availability:
        """Return who is there in one run with this many clients."""
        ...


class Dropout(Protocol):
    """When a client vanishes in the middle of a participation.

    Attributes
    ----------
    possible : whether anybody can drop out at all
    """

    possible: ClassVar[bool]

    def time_to_dropout_s(
        self, client: IntArray, round_: int, streams: Streams, phases_s: FloatArray | None = None
    ) -> FloatArray:
        """Return how long after the start of its participation each client vanishes; `inf` for never.

        Parameters
        ----------
        client : ids in 0..K-1, shape (n,)
        round_ : int, from 1
        streams : the luck of the run
        phases_s : planned time of downlink, compute and uplink of each client, shape (3, n)
            Laws whose hazard differs between phases need the first two; the time of the last does not matter. Where
            these are not known, because the downlink is shared, such a law is asked as a `PhasedDropout`.
        """
        ...


@runtime_checkable
class PhasedDropout(Dropout, Protocol):
    """A law whose hazard differs between the phases: a client vanishes when its summed hazard reaches its endurance."""

    @property
    def rates_per_s(self) -> tuple[float, float, float]:
        """Return the hazard of downlink, compute and uplink."""
        ...

    def endurance(self, client: IntArray, round_: int, streams: Streams) -> FloatArray:
        """Return the summed hazard (rate times seconds) at which each client vanishes, shape (n,)."""
        ...
