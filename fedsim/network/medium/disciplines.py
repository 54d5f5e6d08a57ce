"""Service disciplines: rules by which the transfers on a medium share its bandwidth, as arithmetic without a clock."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

import numpy as np

from fedsim.answers import AnswerError, Contract, Free, Given, InstanceOf, Number, in_words
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.makespan_split import MakespanSplit

_LEAST_SCALE: Final = 1e-100
_FIRST_ROWS: Final = 16


@runtime_checkable
class Job(Protocol):
    """One transfer as a discipline sees it: hashable, and equal to itself only."""

    @property
    def bits(self) -> float: ...

    @property
    def work(self) -> float:
        """Work for the medium in Hz s."""
        ...


class Discipline(ABC):
    """A rule by which jobs share a medium; an object serves one direction of one site in one run.

    Which jobs are in service, in which proportion they share the work, and `rate_hz` change with `join` and `leave`
    only; in between, the medium calls `advance` with less work than remains until the next end, or exactly as much.
    `fedsim.testing.check_discipline` checks a discipline.

    Attributes
    ----------
    counts_air : whether the medium asks for `occupied`; it sets this before the first job
    asked_at_each_join : whether the medium asks for the next end after each join; otherwise once after all joins of one
        event, for disciplines where this costs more than O(log n)

    Examples
    --------
    >>> from collections import namedtuple
    >>> from fedsim.network import SHARINGS
    >>> rule, upload = SHARINGS.load("equal")(), namedtuple("Upload", "bits work")
    >>> for work in (4e5, 1e5):
    ...     rule.join(upload(bits=10 * work, work=work))
    >>> rule.next_end()[0]  # the short one has its 1e5 Hz s when both have been given as much
    200000.0
    """

    asked_at_each_join: ClassVar[bool] = True
    counts_air = False

    def prepare(self, channel: Channel) -> None:
        """Take what the rule needs of a cell's radio, before the first job; by default nothing.

        Parameters
        ----------
        channel : radio of the cell: SNR and efficiency of each client
        """
        return

    @abstractmethod
    def join(self, job: Job) -> None:
        """Add a job that starts now.

        Parameters
        ----------
        job : one transfer
        """

    @abstractmethod
    def leave(self, job: Job) -> None:
        """Remove a job that has ended or is cancelled; a job that is not present changes nothing.

        Parameters
        ----------
        job : one transfer
        """

    @abstractmethod
    def advance(self, work: float) -> None:
        """Divide work of the medium in Hz s among the jobs present; called only while there are any.

        Parameters
        ----------
        work : in Hz s, at most what `next_end` has said
        """

    @abstractmethod
    def served(self, job: Job) -> float:
        """Return the work done for a job that is present, in Hz s.

        Parameters
        ----------
        job : one transfer
        """

    def occupied(self, job: Job) -> float:
        """Return for how much of band and time a job that is present has had the medium, in Hz s.

        It is the job's time on the air. By default it is the work done for it, as where the medium does as much work as
        its bandwidth.

        Parameters
        ----------
        job : one transfer
        """
        return self.served(job)

    @abstractmethod
    def next_end(self) -> tuple[float, Job]:
        """Return the work of the whole medium in Hz s until the next job ends, and that job.

        It holds for the jobs present now; called only while there are any.
        """

    @abstractmethod
    def in_service(self) -> Collection[Job]:
        """Return the jobs that are served now. Large collections should find a member in constant time."""

    def rate_hz(self, bandwidth_hz: float) -> float:
        """Return the work in Hz s that a medium of some bandwidth does in a second; by default its bandwidth.

        Parameters
        ----------
        bandwidth_hz : of the medium
        """
        return bandwidth_hz


@dataclass(frozen=True)
class _NextEnd:
    def __call__(self, answer: object, given: Given) -> tuple[float, Any]:
        if not (isinstance(answer, tuple) and len(answer) == 2):
            raise AnswerError(in_words(answer), "a pair of the work until the next end and the job")
        return Number(least=-_rounding(answer[1]))(answer[0], given), answer[1]


@dataclass(frozen=True)
class _Served:
    def __call__(self, answer: object, given: Given) -> float:
        found: float = Number(least=-_rounding(given["job"]))(answer, given)
        return found


def _rounding(job: Any) -> float:
    """Return by how much work may fall below 0 where a job's work is subtracted in floating point."""
    return _ROUNDING * float(job.work) if isinstance(job, Job) else 0.0


_ROUNDING: Final = 1e-9


DISCIPLINE: Final = Contract(
    "sharing rule",
    Discipline,
    {
        "prepare": Free(),
        "join": Free(),
        "leave": Free(),
        "advance": Free(),
        "served": _Served(),
        "occupied": _Served(),
        "next_end": _NextEnd(),
        "in_service": InstanceOf(Collection),
        "rate_hz": Number(least=0),
    },
)


class JobRows:
    """Numbers of the jobs present: a row for each number, and in it a place for each job, in the order of joining."""

    def __init__(self, rows: int) -> None:
        self.jobs: list[Job] = []
        self.joined: dict[Job, int] = {}
        self._count = 0
        # The last row counts jobs by joining, by which a job finds its place.
        self._table = np.zeros((rows + 1, _FIRST_ROWS))
        self.rows = self._table[:rows, :0]

    def place(self, job: Job) -> int:
        return int(self._table[-1, : len(self.jobs)].searchsorted(self.joined[job]))

    def add(self, job: Job, *numbers: float) -> None:
        place = len(self.jobs)
        self.jobs.append(job)
        self._count += 1
        self.joined[job] = self._count
        if place == self._table.shape[1]:
            self._table = np.concatenate([self._table, np.zeros_like(self._table)], axis=1)
        self._table[:, place] = *numbers, self._count
        self.rows = self._table[:-1, : place + 1]

    def remove(self, job: Job) -> None:
        if job in self.joined:
            place, left = self.place(job), len(self.jobs) - 1
            del self.joined[job], self.jobs[place]
            self._table[:, place:left] = self._table[:, place + 1 : left + 1]
            self.rows = self._table[:-1, :left]


class EqualSharing(Discipline):
    """Equal shares of the bandwidth for all jobs present: egalitarian processor sharing.

    A virtual clock shows the work that each job present has been given since the medium was last empty. The end of a
    job on that clock is known when it joins and never changes, so that a heap of these ends makes joining, leaving and
    ending O(log n). This is the virtual time of Parekh and Gallager, "A generalized processor sharing approach to flow
    control", IEEE/ACM Trans. Networking 1(3), 1993.
    """

    size_of: "ClassVar[attrgetter[float]]" = attrgetter("work")
    """What the clock counts of a job."""

    def __init__(self) -> None:
        self._virtual_time = 0.0
        self._virtual_finish: dict[Job, float] = {}
        self._heap: list[tuple[float, int, Job]] = []
        self._joined = 0

    def join(self, job: Job) -> None:
        if not self._virtual_finish:
            self._virtual_time = 0.0
            self._heap.clear()
        finish = self._virtual_time + self.size_of(job)
        self._virtual_finish[job] = finish
        self._joined += 1
        heappush(self._heap, (finish, self._joined, job))

    def leave(self, job: Job) -> None:
        """Remove a job; its entry in the heap stays until it is the first."""
        self._virtual_finish.pop(job, None)

    def advance(self, work: float) -> None:
        self._virtual_time += work / len(self._virtual_finish)

    def served(self, job: Job) -> float:
        return self._virtual_time - (self._virtual_finish[job] - job.work)

    def next_end(self) -> tuple[float, Job]:
        left, job = self._first_left()
        return left * len(self._virtual_finish), job

    def _first_left(self) -> tuple[float, Job]:
        """Return what the clock has to go on until the next end, and the job that ends then."""
        heap, present = self._heap, self._virtual_finish
        finish, _, job = heap[0]
        while job not in present:
            heappop(heap)
            finish, _, job = heap[0]
        return finish - self._virtual_time, job

    def in_service(self) -> Collection[Job]:
        return self._virtual_finish.keys()


class FirstCome(Discipline):
    """The whole bandwidth for one job at a time, in the order of joining: TDMA with whole messages."""

    def __init__(self) -> None:
        self._served: tuple[Job, ...] = ()
        self._queue: OrderedDict[Job, None] = OrderedDict()
        self._remaining = 0.0

    def join(self, job: Job) -> None:
        if self._served:
            self._queue[job] = None
        else:
            self._served, self._remaining = (job,), job.work

    def leave(self, job: Job) -> None:
        if job not in self._served:
            self._queue.pop(job, None)
        elif self._queue:
            self._served = self._queue.popitem(last=False)[:1]
            self._remaining = self._served[0].work
        else:
            self._served = ()

    def advance(self, work: float) -> None:
        self._remaining -= work

    def served(self, job: Job) -> float:
        return job.work - self._remaining if job in self._served else 0.0

    def next_end(self) -> tuple[float, Job]:
        return self._remaining, self._served[0]

    def in_service(self) -> Collection[Job]:
        return self._served


class MinimumMakespan(Discipline):
    """Shares in proportion to what remains of each job, so that all jobs present end at the same instant.

    For a cohort that starts together, this is the split of least makespan: with works ``w_k`` and bandwidth B, client k
    gets ``b_k = B w_k / sum(w)`` and all end after ``sum(w) / B``. No rule can beat this, because the medium is never
    idle. A job that joins later makes it split anew. The bandwidth stays in full use, so the last end is the least
    possible for any times of joining, ``max over s of (s + work that joins from s on / B)``, without knowing them in
    advance. A constant split that solves ``sum(w_k / (T - s_k)) = B`` leaves bandwidth idle until the last has joined,
    and its T is later.

    All jobs shrink by one common factor: what remains of a job is a constant of its own times a common scale, and
    joining, leaving and advancing are O(1).
    """

    def __init__(self) -> None:
        self._remaining, self._scale = 0.0, 1.0
        self._unscaled: dict[Job, float] = {}

    def join(self, job: Job) -> None:
        if not self._unscaled:
            self._remaining, self._scale = 0.0, 1.0
        elif self._scale < _LEAST_SCALE:
            self._unscaled = {other: remaining * self._scale for other, remaining in self._unscaled.items()}
            self._scale = 1.0
        self._unscaled[job] = job.work / self._scale
        self._remaining += job.work

    def leave(self, job: Job) -> None:
        if job in self._unscaled:
            self._remaining = max(0.0, self._remaining - self._unscaled.pop(job) * self._scale)

    def advance(self, work: float) -> None:
        remaining = max(0.0, self._remaining - work)
        self._scale *= remaining / self._remaining if self._remaining else 0.0
        self._remaining = remaining

    def served(self, job: Job) -> float:
        return job.work - self._unscaled[job] * self._scale

    def next_end(self) -> tuple[float, Job]:
        return self._remaining, next(iter(self._unscaled))

    def in_service(self) -> Collection[Job]:
        return self._unscaled.keys()


class MakespanWithPower(MinimumMakespan):
    """Least makespan where a client has the more power for a hertz the smaller its part of the band is.

    The parts solve ``bits left / (x B e(snr min(1 / x, densest))) = T`` for all jobs with one T
    (`fedsim.network.radio.makespan_split`). What is left of all shrinks by a common factor, so that parts and rates
    stay until a job joins or leaves.
    """

    asked_at_each_join: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self._split: MakespanSplit | None = None
        self._rate_hz: float | None = None
        self._whole = 0.0
        # Of each job, in the order of `_unscaled`: efficiency, and SNR and density of its client.
        self._jobs = JobRows(3)

    def prepare(self, channel: Channel) -> None:
        self._split = MakespanSplit(channel)

    def join(self, job: Job) -> None:
        super().join(job)
        efficiency = job.bits / job.work
        snr, densest = (0.0, 0.0) if self._split is None else self._split.radio_of(efficiency)
        self._jobs.add(job, efficiency, snr, densest)
        self._rate_hz, self._whole = None, self._remaining

    def leave(self, job: Job) -> None:
        super().leave(job)
        self._jobs.remove(job)
        self._rate_hz = None

    def rate_hz(self, bandwidth_hz: float) -> float:
        if self._split is None or not self._unscaled or self._remaining <= _ROUNDING * self._whole:
            return bandwidth_hz
        if self._rate_hz is None:
            efficiency, snr, densest = self._jobs.rows
            bits = np.fromiter(self._unscaled.values(), np.float64) * (self._scale * efficiency)
            self._rate_hz = self._remaining / self._split.time_s(bits, snr, densest)
        return self._rate_hz
