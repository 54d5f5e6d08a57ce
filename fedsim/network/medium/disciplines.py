"""Rules by which a medium's bandwidth is shared: equally, in turn, and so that all finish together."""

from collections import deque
from heapq import heappop, heappush
from typing import Final

from simpy import Environment

from fedsim.network.medium.spectrum import SharedSpectrum, SpectrumTransfer

_LEAST_SCALE: Final = 1e-100


class EqualSharing(SharedSpectrum):
    """Everybody present has the same share of the bandwidth: egalitarian processor sharing.

    The medium's own clock shows the work that each of those present has been given since it was last empty, so a
    transfer's end on that clock is known when it comes and never changes; a heap of these ends makes coming, going and
    ending O(log n) (virtual time, as in Parekh and Gallager, "A generalized processor sharing approach to flow
    control", IEEE/ACM Trans. Networking 1(3), 1993).

    Parameters
    ----------
    env : Environment
    bandwidth_hz : float > 0
    """

    def __init__(self, env: Environment, bandwidth_hz: float) -> None:
        super().__init__(env, bandwidth_hz)
        self._given = 0.0
        self._heap: list[tuple[float, int, SpectrumTransfer]] = []
        self._came = 0

    def _join(self, transfer: SpectrumTransfer) -> None:
        if self.present == 1:
            self._given = 0.0
            self._heap.clear()
        transfer.began_s = transfer.came_s
        transfer.mark = self._given + transfer.work
        self._came += 1
        heappush(self._heap, (transfer.mark, self._came, transfer))

    def _drop(self, transfer: SpectrumTransfer) -> None:
        """Leave it in the heap: whoever looks for the next end passes over those that are gone."""

    def _work(self, work: float) -> None:
        self._given += work / self.present

    def _served(self, transfer: SpectrumTransfer) -> float:
        return self._given - (transfer.mark - transfer.work)

    def _left(self) -> float:
        return (self._next().mark - self._given) * self.present

    def _next(self) -> SpectrumTransfer:
        while not self._heap[0][2].there:
            heappop(self._heap)
        return self._heap[0][2]

    def _there(self) -> list[SpectrumTransfer]:
        return [transfer for _, _, transfer in self._heap if transfer.there]


class FirstCome(SharedSpectrum):
    """One at a time with the whole bandwidth, in the order in which they come: TDMA with whole messages."""

    def __init__(self, env: Environment, bandwidth_hz: float) -> None:
        super().__init__(env, bandwidth_hz)
        self._queue: deque[SpectrumTransfer] = deque()
        self._to_do = 0.0

    def _join(self, transfer: SpectrumTransfer) -> None:
        self._queue.append(transfer)
        if self.present == 1:
            self._begin()

    def _drop(self, transfer: SpectrumTransfer) -> None:
        if self._queue[0] is transfer:
            self._begin()

    def _begin(self) -> None:
        """Give the medium to the first in the queue that is still there."""
        while self._queue and not self._queue[0].there:
            self._queue.popleft()
        if self._queue:
            self._queue[0].began_s, self._to_do = self.env.now, self._queue[0].work

    def _work(self, work: float) -> None:
        self._to_do -= work

    def _served(self, transfer: SpectrumTransfer) -> float:
        return transfer.work - self._to_do if self._queue[0] is transfer else 0.0

    def _left(self) -> float:
        return self._to_do

    def _next(self) -> SpectrumTransfer:
        return self._queue[0]

    def _there(self) -> list[SpectrumTransfer]:
        return [transfer for transfer in self._queue if transfer.there]


class MinimumMakespan(SharedSpectrum):
    """Shares in proportion to what each has still to do, so that all present finish at the same instant.

    For a cohort that starts together, this is the split of least makespan: with works ``w_k`` and bandwidth B, client k
    gets ``b_k = B w_k / sum(w)`` and all end after ``sum(w) / B``, which no rule can beat, because the medium is never
    idle. Whoever comes later makes it split anew; the bandwidth stays in full use, so the last end is the least
    possible for any times of coming, ``max over s of (s + work that comes from s on / B)``, without knowing them in
    advance. (A constant split that solves ``sum(w_k / (T - s_k)) = B`` leaves bandwidth idle until the last has
    come, and its T is later.)

    All shrink by one common factor: what a transfer has still to do is its mark times the scale, and coming, going and
    the passing of time are O(1).
    """

    def __init__(self, env: Environment, bandwidth_hz: float) -> None:
        super().__init__(env, bandwidth_hz)
        self._to_do, self._scale = 0.0, 1.0
        self._members: dict[int, SpectrumTransfer] = {}

    def _join(self, transfer: SpectrumTransfer) -> None:
        if self.present == 1:
            self._to_do, self._scale = 0.0, 1.0
        elif self._scale < _LEAST_SCALE:
            for member in self._members.values():
                member.mark *= self._scale
            self._scale = 1.0
        transfer.began_s = transfer.came_s
        transfer.mark = transfer.work / self._scale
        self._to_do += transfer.work
        self._members[id(transfer)] = transfer

    def _drop(self, transfer: SpectrumTransfer) -> None:
        del self._members[id(transfer)]
        self._to_do = max(0.0, self._to_do - transfer.mark * self._scale)

    def _work(self, work: float) -> None:
        left = max(0.0, self._to_do - work)
        self._scale *= left / self._to_do if self._to_do else 0.0
        self._to_do = left

    def _served(self, transfer: SpectrumTransfer) -> float:
        return transfer.work - transfer.mark * self._scale

    def _left(self) -> float:
        return self._to_do

    def _next(self) -> SpectrumTransfer:
        return next(iter(self._members.values()))

    def _there(self) -> list[SpectrumTransfer]:
        return list(self._members.values())
