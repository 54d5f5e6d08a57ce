"""Disciplines under which a hertz carries more, or less, the more clients are present: equal shares with gains."""

import math
from abc import abstractmethod
from collections.abc import Collection, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import ClassVar, Final

import numpy as np

from fedsim.arrays import numbers_of
from fedsim.network.medium.disciplines import Discipline, Job
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.shares.multiuser_diversity import GainTable
from fedsim.units import Positive, Seconds

_BELOW: Final = 8
_ABOVE: Final = 2
_MOST_CLOCKS: Final = 4

FAIR_WINDOW_S: Final = 1.0
"""Time over which a proportional-fair scheduler's average forgets all but 1/e: 1,000 slots of a millisecond."""

_Claim = tuple[int, int, float, Job, float]
"""A job present: its number by joining, the kind of its client, the work for this kind at which it ends, the job, and
the time given to each client before it."""


class GainSharing(Discipline):
    """Equal shares for all jobs present, with another gain of each the more jobs are present.

    Gains differ between kinds of clients, so that one clock does not order their ends. But every gain is linear between
    two numbers of clients for which it is computed. Two clocks count the time given to a client at the gains of the
    lower and of the higher number, and give the work done for each kind: a change of the jobs present moves the clocks
    and no job. The largest gain of a kind for a window of numbers bounds the end of a job from below, and a heap of
    these bounds, each from the last look at its job, shows the few jobs that may be the next to end. A number of jobs
    outside the window costs O(n), other numbers with gains of their own O(kinds), and every other change O(log n).
    """

    asked_at_each_join: ClassVar[bool] = False

    def __init__(self, gains: GainTable | None = None) -> None:
        self.gains = gains
        self._present: dict[Job, _Claim] = {}
        self._joined = 0
        # Number of jobs for which the gains are looked up; 0 before the look.
        self._users, self._gain_sum = 0, 0.0
        # Place of the gains in use, weight of the next place, and sums of both over jobs.
        self._place, self._share, self._fewer_sum, self._more_sum = -1, 0.0, 0.0, 0.0
        # Time given to each client since the medium was empty, and at the gains of both places.
        self._time = self._fewer_clock = self._more_clock = 0.0
        # The like time at the gains of a few other places, which `_done` does not count yet.
        self._clocks: dict[int, float] = {}
        self._older: list[tuple[float, Sequence[float]]] = []
        self._window = range(0)
        self._ceiling_of: Sequence[float] = numbers_of(np.zeros(0))
        # Numbers of jobs for which the bounds hold, and a further job brings no end forward.
        self._least, self._most = math.inf, 0.0
        # Of each kind: work done that the clocks do not count, and number of jobs.
        self._done, self._count = np.zeros((2, 0))
        self._heap: list[tuple[float, _Claim]] = []
        # The next end as work of the medium and the first to end, until a job joins or leaves.
        self._left: float | None = None
        self._first: _Claim | None = None

    def prepare(self, channel: Channel) -> None:
        if self.gains is None:
            self.gains = self.gains_of(channel)

    @abstractmethod
    def gains_of(self, channel: Channel) -> GainTable | None:
        """Return the gains of the rule in a cell."""

    def rate_hz(self, bandwidth_hz: float) -> float:
        if not self._users:
            if not self._present:
                return bandwidth_hz
            self._look_up_gains()
        return bandwidth_hz * self._gain_sum / self._users

    def join(self, job: Job) -> None:
        if not self._present:
            self._restart()
        work = job.work
        kind = self._kind_of(job.bits / work)
        fewer, more = self._fewer_of[kind], self._more_of[kind]
        finish = work + self._done_of[kind] + self._fewer_clock * fewer + self._more_clock * more
        for clock, gain_of in self._older:
            finish += clock * gain_of[kind]
        self._joined += 1
        self._present[job] = claim = (self._joined, kind, finish, job, self._time)
        heappush(self._heap, (self._time + work / self._ceiling_of[kind], claim))
        self._count_of[kind] += 1.0
        self._fewer_sum += fewer
        self._more_sum += more
        self._users, self._left = 0, None

    def leave(self, job: Job) -> None:
        """Remove a job; its entry in the heap stays until it is the first."""
        claim = self._present.pop(job, None)
        if claim is None:
            return
        if claim is self._first:
            self._first = None
        kind = claim[1]
        self._count_of[kind] -= 1.0
        self._fewer_sum -= self._fewer_of[kind]
        self._more_sum -= self._more_of[kind]
        self._users, self._left = 0, None

    def earliest_end_s(self, job: Job, bandwidth_hz: float) -> float | None:
        """Return the end of the job at its largest gain in the window, while a join there brings no end forward."""
        users = len(self._present)
        if self._least < users <= self._most:
            return job.work * users / (self._ceiling_of[self._present[job][1]] * bandwidth_hz)
        return None

    def advance(self, work: float) -> None:
        if not self._users:
            self._look_up_gains()
        step = work / self._gain_sum
        more = self._share * step
        self._time += step
        self._fewer_clock += step - more
        self._more_clock += more
        left = self._left
        if left is not None:
            self._left = left - work if left > work else 0.0

    def served(self, job: Job) -> float:
        _, kind, finish, _, _ = self._present[job]
        done = self._done_of[kind] + self._fewer_clock * self._fewer_of[kind] + self._more_clock * self._more_of[kind]
        for clock, gain_of in self._older:
            done += clock * gain_of[kind]
        return job.work - max(0.0, finish - done)

    def occupied(self, job: Job) -> float:
        return self._time - self._present[job][4]

    def next_end(self) -> tuple[float, Job]:
        if self._left is None or self._first is None:
            if not self._users:
                self._look_up_gains()
            time, self._first = self._look_for_first()
            self._left = max(0.0, time * self._gain_sum)
        return self._left, self._first[3]

    def in_service(self) -> Collection[Job]:
        return self._present.keys()

    def _look_for_first(self) -> tuple[float, _Claim]:
        heap, present, now, share = self._heap, self._present, self._time, self._share
        fewer_of, more_of, done_of, ceiling_of = self._fewer_of, self._more_of, self._done_of, self._ceiling_of
        fewer_clock, more_clock, older = self._fewer_clock, self._more_clock, self._older
        if self._first is not None:
            heappush(heap, (now, self._first))
        first, first_left, least, until = None, 0.0, math.inf, math.inf
        others: list[tuple[float, _Claim]] = []
        while heap and heap[0][0] <= until:
            claim = heap[0][1]
            _, kind, finish, job, _ = claim
            if present.get(job) is not claim:
                heappop(heap)
                continue
            fewer, more = fewer_of[kind], more_of[kind]
            left = finish - done_of[kind] - fewer_clock * fewer - more_clock * more
            for clock, gain_of in older:
                left -= clock * gain_of[kind]
            time = left / (fewer + share * (more - fewer))
            if first is None:
                heappop(heap)
                first, first_left, least, until = claim, left, time, now + time
                continue
            if time < least or (time == least and claim < first):
                claim, left, first, first_left = first, first_left, claim, left
                least, until = time, now + time
            bound = now + left / ceiling_of[claim[1]]
            if bound > until:
                heapreplace(heap, (bound, claim))
            else:
                heappop(heap)
                others.append((bound, claim))
        for entry in others:
            heappush(heap, entry)
        if first is None:
            raise RuntimeError("a medium without jobs was asked for its next end")
        return least, first

    def _look_up_gains(self) -> None:
        self._users = users = len(self._present)
        place, self._share = self._place_of(users)
        if place != self._place:
            self._turn_to(place)
        self._gain_sum = self._fewer_sum + self._share * (self._more_sum - self._fewer_sum)

    def _turn_to(self, place: int) -> None:
        """Use the gains of another place, and another window where needed."""
        clocks = self._clocks
        clocks[self._place], clocks[self._place + 1] = self._fewer_clock, self._more_clock
        in_window, gains = place in self._window, self._known_gains()
        if len(clocks) > _MOST_CLOCKS or not in_window:
            for other, clock in clocks.items():
                if clock:
                    self._done += clock * gains.curves(other, other + 1)[0]
            clocks.clear()
        self._place, self._fewer_clock, self._more_clock = place, clocks.pop(place, 0.0), clocks.pop(place + 1, 0.0)
        self._older = [(clock, gains.row(other)) for other, clock in clocks.items() if clock]
        self._fewer_of, self._more_of = gains.row(place), gains.row(place + 1)
        self._fewer_sum, self._more_sum = (gains.curves(place, place + 2) @ self._count).tolist()
        if not in_window:
            self._move_window(place)

    def _move_window(self, place: int) -> None:
        """Take the bounds of jobs from the gains around a place."""
        self._window = range(max(0, place - _BELOW), place + _ABOVE)
        before, window = self._ceiling_of, self._known_gains().window(self._window.start, self._window.stop)
        self._ceiling_of, self._least, self._most = window
        if not np.any(np.asarray(self._ceiling_of) > before):
            # Bounds by larger gains hold too.
            return
        ceiling_of, time, done_of = self._ceiling_of, self._time, self._done_of
        self._heap = [
            (time + (claim[2] - done_of[claim[1]]) / ceiling_of[claim[1]], claim) for claim in self._present.values()
        ]
        heapify(self._heap)
        self._first = None

    def _restart(self) -> None:
        self._time = self._fewer_clock = self._more_clock = 0.0
        self._clocks.clear()
        self._older = []
        if self._place < 0:
            self._kind_of, self._place_of = self._known_gains().kind, self._known_gains().place
            kinds = self._known_gains().curves(0, 1).size
            self._done, self._count = np.zeros((2, kinds))
            self._done_of, self._count_of = numbers_of(self._done), numbers_of(self._count)
            self._ceiling_of = numbers_of(np.zeros(kinds))
            self._turn_to(0)
        self._done.fill(0.0)
        self._heap.clear()

    def _known_gains(self) -> GainTable:
        if self.gains is None:
            raise RuntimeError(f"{type(self).__name__} needs gains, or prepare() with a channel")
        return self.gains


class MaxRelativeSnr(GainSharing):
    """In each block the whole band for the client whose gain is the largest against its own mean.

    All clients have the same share of time. The rule is proportionally fair where rates are in proportion to gains, at
    low SNR, or where all clients have one SNR.
    """

    def __init__(self) -> None:
        super().__init__()

    def gains_of(self, channel: Channel) -> GainTable:
        return channel.diversity_gain


class EqualWithPower(GainSharing):
    """Equal shares of the band, in which each client has more power for a hertz the smaller its share is."""

    def gains_of(self, channel: Channel) -> GainTable | None:
        return channel.share_gain


class ProportionalFair(GainSharing):
    """The scheduler that serves the largest ratio of the present rate to the average rate.

    Parameters
    ----------
    window_s : time over which the average forgets all but 1/e, where fading is drawn; means are those of a long one
    """

    def __init__(self, window_s: Positive[Seconds] = FAIR_WINDOW_S) -> None:
        super().__init__()
        self.window_s = window_s

    def gains_of(self, channel: Channel) -> GainTable:
        return channel.fair_gain
