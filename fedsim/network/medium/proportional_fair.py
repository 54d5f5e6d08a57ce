"""The discipline of a scheduler that serves each client in the blocks in which its fading is at its best."""

from collections.abc import Collection, MutableSequence
from heapq import heapify, heappop, heappush
from typing import ClassVar, Final, NamedTuple

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.network.medium.disciplines import Discipline, Job
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.multiuser_diversity import DiversityGain

_BELOW: Final = 4
_ABOVE: Final = 3


class _Claim(NamedTuple):
    """A job present.

    Attributes
    ----------
    number : in the order of joining
    kind : of its client
    finish : work done for this kind, since the medium was empty, when the job ends
    job : the job itself
    """

    number: int
    kind: int
    finish: float
    job: Job


_Look = tuple[float, _Claim, float]
"""The time that a job needs if no other joins or leaves, the job, and the least clock time at which it may end."""


class ProportionalFair(Discipline):
    """Equal shares of the time for all jobs present, with more work done in it the more jobs are present.

    Gains differ between kinds of clients, so that one clock does not tell their ends. But every gain is linear between
    two numbers of clients for which it is computed. Two clocks count the time given to a client at the gains of the
    lower and of the higher number, and tell the work done for each kind: a change of the jobs present moves the clocks
    and no job. The largest gain of a kind for a window of numbers bounds the end of a job from below, and a heap of
    these bounds, each from the last look at its job, shows the few jobs that may be the next to end. A number of jobs
    outside the window costs O(n), other numbers with gains of their own O(kinds), and every other change O(log n).

    Parameters
    ----------
    gains : factor by which a hertz does more work, for each client and number of clients; None takes it from `prepare`
    """

    asked_at_each_join: ClassVar[bool] = False

    def __init__(self, gains: DiversityGain | None = None) -> None:
        self.gains = gains
        self._present: dict[Job, _Claim] = {}
        self._joined = 0
        # Number of jobs for which the gains are looked up; 0 before the look.
        self._users, self._gain_sum = 0, 0.0
        # Place of the gains in use, weight of the next place, and sums of both over jobs.
        self._place, self._share, self._fewer_sum, self._more_sum = -1, 0.0, 0.0, 0.0
        # Time given to each client since the medium was empty, and at the gains of both places since these are in use.
        self._time = self._fewer_clock = self._more_clock = 0.0
        self._window, self._curves = range(0), np.zeros((2, 0))
        # Of each kind: work done before these gains were in use, and number of jobs.
        self._done, self._count = np.zeros((2, 0))
        self._heap: list[tuple[float, _Claim]] = []
        # The next end as work of the medium and the first to end, until a job joins or leaves.
        self._left: float | None = None
        self._first: _Claim | None = None

    def prepare(self, channel: Channel) -> None:
        """Take the gains of the cell's rate law, at each client's own mean SNR."""
        if self.gains is None:
            self.gains = channel.diversity_gain

    def rate_hz(self, bandwidth_hz: float) -> float:
        """Return the bandwidth times the mean gain of the jobs present."""
        if not self._present:
            return bandwidth_hz
        if not self._users:
            self._look_up_gains()
        return bandwidth_hz * self._gain_sum / self._users

    def join(self, job: Job) -> None:
        """Add a job in O(log n)."""
        if not self._present:
            self._restart()
        kind = self._known_gains().kind(job.bits / job.work)
        self._joined += 1
        self._present[job] = claim = _Claim(self._joined, kind, job.work + self._work_done(kind), job)
        heappush(self._heap, (self._time + job.work / self._ceiling_of[kind], claim))
        self._count_of[kind] += 1.0
        self._fewer_sum += self._fewer_of[kind]
        self._more_sum += self._more_of[kind]
        self._users, self._left = 0, None

    def leave(self, job: Job) -> None:
        """Remove a job; its entry in the heap stays until it is the first."""
        if job not in self._present:
            return
        claim = self._present.pop(job)
        if claim is self._first:
            self._first = None
        self._count_of[claim.kind] -= 1.0
        self._fewer_sum -= self._fewer_of[claim.kind]
        self._more_sum -= self._more_of[claim.kind]
        self._users, self._left = 0, None

    def advance(self, work: float) -> None:
        """Give each job the same time, at the gains of the jobs present."""
        if not self._users:
            self._look_up_gains()
        step = work / self._gain_sum
        more = self._share * step
        self._time += step
        self._fewer_clock += step - more
        self._more_clock += more
        if self._left is not None:
            self._left = max(0.0, self._left - work)

    def served(self, job: Job) -> float:
        """Return the work of the job less what remains of it."""
        claim = self._present[job]
        return job.work - max(0.0, claim.finish - self._work_done(claim.kind))

    def next_end(self) -> tuple[float, Job]:
        """Return the least time until an end as work of the medium, and the job that ends then."""
        if self._left is None or self._first is None:
            if not self._users:
                self._look_up_gains()
            time, self._first, _ = self._look_for_first()
            self._left = time * self._gain_sum
        return self._left, self._first.job

    def in_service(self) -> Collection[Job]:
        """Return all jobs present."""
        return self._present.keys()

    def _look_for_first(self) -> _Look:
        """Return the job that ends first, and by joining among equals."""
        heap, present = self._heap, self._present
        first = self._look_at(self._first or self._pop())
        others: list[_Look] = []
        while heap and heap[0][0] <= self._time + first[0]:
            claim = heappop(heap)[1]
            if present.get(claim.job) is claim:
                look = self._look_at(claim)
                if look < first:
                    first, look = look, first
                others.append(look)
        for _, claim, bound in others:
            heappush(heap, (bound, claim))
        return first

    def _pop(self) -> _Claim:
        """Remove the first entry of the heap whose job is present."""
        claim = heappop(self._heap)[1]
        while self._present.get(claim.job) is not claim:
            claim = heappop(self._heap)[1]
        return claim

    def _look_at(self, claim: _Claim) -> _Look:
        """Return when a job ends; times of equal jobs are equal."""
        _, kind, finish, _ = claim
        left = max(0.0, finish - self._work_done(kind))
        fewer = self._fewer_of[kind]
        time = left / (fewer + self._share * (self._more_of[kind] - fewer))
        return time, claim, self._time + left / self._ceiling_of[kind]

    def _work_done(self, kind: int) -> float:
        """Return the work done for a kind of client since the medium was empty."""
        return self._done_of[kind] + self._fewer_clock * self._fewer_of[kind] + self._more_clock * self._more_of[kind]

    def _look_up_gains(self) -> None:
        """Look up the gains for the number of jobs present."""
        self._users = len(self._present)
        place, self._share = self._known_gains().place(self._users)
        if place != self._place:
            self._turn_to(place)
        self._gain_sum = self._fewer_sum + self._share * (self._more_sum - self._fewer_sum)

    def _turn_to(self, place: int) -> None:
        """Use the gains of another place, and another window where needed."""
        self._done += self._fewer_clock * self._curves[0] + self._more_clock * self._curves[1]
        self._fewer_clock = self._more_clock = 0.0
        self._place, self._curves = place, self._known_gains().curves(place, place + 2)
        self._fewer_of, self._more_of = _numbers(self._curves[0]), _numbers(self._curves[1])
        self._fewer_sum, self._more_sum = (self._curves @ self._count).tolist()
        if place not in self._window:
            self._move_window(place)

    def _move_window(self, place: int) -> None:
        """Take the bounds of jobs from the gains around a place."""
        self._window = range(max(0, place - _BELOW), place + _ABOVE)
        curves = self._known_gains().curves(self._window.start, self._window.stop + 1)
        self._ceiling_of = ceiling_of = _numbers(curves.max(axis=0))
        time, done_of = self._time, self._done_of
        self._heap = [
            (time + (claim.finish - done_of[claim.kind]) / ceiling_of[claim.kind], claim)
            for claim in self._present.values()
        ]
        heapify(self._heap)
        self._first = None

    def _restart(self) -> None:
        """Begin anew on a medium without jobs."""
        if self._place < 0:
            kinds = self._known_gains().curves(0, 1).size
            self._curves = np.zeros((2, kinds))
            self._done, self._count = np.zeros((2, kinds))
            self._done_of, self._count_of = _numbers(self._done), _numbers(self._count)
            self._turn_to(0)
        self._time = self._fewer_clock = self._more_clock = 0.0
        self._done.fill(0.0)
        self._heap.clear()

    def _known_gains(self) -> DiversityGain:
        if self.gains is None:
            raise RuntimeError("a proportional-fair discipline needs gains, or prepare() with a channel")
        return self.gains


def _numbers(row: FloatArray) -> MutableSequence[float]:
    """Return the elements of a row of memory; NumPy takes several times as long for a single one."""
    return memoryview(row)  # type: ignore[arg-type,return-value]  # typed for bytes alone
