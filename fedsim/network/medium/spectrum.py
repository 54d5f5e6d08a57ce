"""Spectrum that several transfers share, on the clock.

A transfer is work for the medium in Hz s: its bits over its link's spectral efficiency in bit/s/Hz. Counting work
rather than bits lets links of unlike quality share one clock. A transfer that has been carried arrives after its
propagation delay, during which the medium is free for others.
"""

import math

from simpy import Environment, Event

from fedsim.clock import call_after, call_next
from fedsim.network.medium.disciplines import Discipline, Job
from fedsim.network.medium.queued import SAME_INSTANT_ULPS, QueuedTransfer
from fedsim.network.transfers import SpectrumBook


class SpectrumTransfer(QueuedTransfer["SharedSpectrum"]):
    """One transfer over a spectrum: a `Job` of its discipline."""

    __slots__ = ("work",)

    work: float

    def sent_bits(self) -> float:
        if self.done.callbacks is None:
            return self.bits
        work_done = self._medium.work_done(self)
        return self.bits if work_done >= self.work else self.bits * max(0.0, work_done / self.work)

    def on_air_s(self, elapsed_s: float) -> float:
        """Return the seconds on the air where they are counted; those of a link that carries nothing go on."""
        if self.work == math.inf or not self._medium.discipline.counts_air:
            return elapsed_s
        return min(self._medium.occupied(self) / self._medium.bandwidth_hz, elapsed_s)


class SharedSpectrum:
    """Bandwidth shared by transfers according to a discipline."""

    def __init__(self, env: Environment, bandwidth_hz: float, discipline: Discipline) -> None:
        self.env, self.bandwidth_hz, self.discipline = env, bandwidth_hz, discipline
        self._present: dict[Job, SpectrumTransfer] = {}
        self._waiting: dict[Job, None] = {}
        self._rate_hz = discipline.rate_hz(bandwidth_hz)
        self._seen_s = env.now
        self._timer: Event | None = None
        self._joined = False
        self._fires_s = math.inf
        self._carried = self._received = self._lost = 0.0
        self._most = self._presence_s = self._sojourn_s = self._came_s = 0.0
        # For the bound on rounding: the most work of a transfer, the most transfers at a time, how often work was done.
        self._heaviest, self._crowd, self._steps = 0.0, 0, 0

    @property
    def present(self) -> int:
        return len(self._present)

    def count_air(self) -> None:
        self.discipline.counts_air = True

    def send(self, bits: float, efficiency: float, delay_s: float = 0.0) -> SpectrumTransfer:
        transfer = self.make(bits, efficiency, delay_s)
        self.start(transfer)
        return transfer

    def make(self, bits: float, efficiency: float, delay_s: float = 0.0) -> SpectrumTransfer:
        transfer = SpectrumTransfer(self, bits, delay_s)
        transfer.work = (bits / efficiency if efficiency > 0 else math.inf) if bits > 0 else 0.0
        return transfer

    def start(self, transfer: SpectrumTransfer) -> None:
        work, now_s = transfer.work, self.env.now
        transfer.came_s = now_s
        if 0 < work < math.inf:
            if now_s > self._seen_s:
                self._catch_up(now_s)
            if self._fires_s - now_s <= 2 * SAME_INSTANT_ULPS * math.ulp(now_s):
                self._end_due(now_s)
            self._join(transfer, now_s)
        else:
            transfer.began_s = now_s
            if work == 0:
                transfer.send_on()

    def _join(self, transfer: SpectrumTransfer, now_s: float) -> None:
        discipline, present, waiting = self.discipline, self._present, self._waiting
        self._came_s += now_s
        present[transfer] = transfer
        if transfer.work > self._heaviest or len(present) > self._crowd:
            self._heaviest, self._crowd = max(self._heaviest, transfer.work), max(self._crowd, len(present))
        discipline.join(transfer)
        served = discipline.in_service()
        if transfer in served:
            transfer.began_s = now_s
        else:
            waiting[transfer] = None
        if waiting and not waiting.keys().isdisjoint(served):
            self._begin_service(now_s)
        if discipline.asked_at_each_join:
            self._rate_hz = discipline.rate_hz(self.bandwidth_hz)
            self._plan(now_s, discipline.next_end()[0])
        elif not self._joined:
            self._joined = True
            call_next(self.env, self._plan_joined)

    def forget(self, transfer: SpectrumTransfer) -> None:
        """Remove a cancelled transfer; its share goes to the others at once."""
        if transfer in self._present:
            now_s = self.env.now
            self._catch_up(now_s)
            transfer.work_done = self.discipline.served(transfer)
            if self.discipline.counts_air:
                transfer.occupied = self.discipline.occupied(transfer)
            self._lost += transfer.work_done
            self._let_go(transfer, now_s)
            if self._present:
                self._plan(now_s, self.discipline.next_end()[0])
            else:
                self._timer, self._fires_s = None, math.inf
        elif transfer.work_done:
            self._received -= transfer.work_done
            self._lost += transfer.work_done

    def work_done(self, transfer: SpectrumTransfer) -> float:
        if transfer not in self._present:
            return transfer.work_done
        self._catch_up(self.env.now)
        return self.discipline.served(transfer)

    def occupied(self, transfer: SpectrumTransfer) -> float:
        if transfer not in self._present:
            return transfer.occupied
        self._catch_up(self.env.now)
        return self.discipline.occupied(transfer)

    def book(self) -> SpectrumBook:
        self._catch_up(self.env.now)
        under_way = math.fsum(self.discipline.served(transfer) for transfer in self._present)
        sojourn_s = self._sojourn_s + self.present * self.env.now - self._came_s
        rounding = self._crowd * self._steps * math.ulp(self._heaviest)
        return SpectrumBook(
            self._carried, self._received, self._lost, under_way, self._most, self._presence_s, sojourn_s, rounding
        )

    def _catch_up(self, now_s: float) -> None:
        elapsed_s = now_s - self._seen_s
        if elapsed_s > 0:
            self._seen_s = now_s
            present = len(self._present)
            self._presence_s += present * elapsed_s
            work = self._rate_hz * elapsed_s
            self._most += work
            if present:
                self._carried += work
                self._steps += 1
                self.discipline.advance(work)

    def _begin_service(self, now_s: float) -> None:
        waiting, served = self._waiting, self.discipline.in_service()
        for job in tuple(served if len(served) < len(waiting) else waiting):
            if job in waiting and job in served:
                del waiting[job]
                self._present[job].began_s = now_s

    def _plan(self, now_s: float, left: float) -> None:
        """Set a timer no later than the next end, which is after some more work in Hz s."""
        delay_s = left / self._rate_hz if left > 0.0 else 0.0
        if now_s + delay_s < self._fires_s:
            self._timer, self._fires_s = call_after(self.env, delay_s, self._on_time), now_s + delay_s

    def _plan_joined(self, _event: Event) -> None:
        self._joined = False
        if self._present:
            self._rate_hz = self.discipline.rate_hz(self.bandwidth_hz)
            self._plan(self.env.now, self.discipline.next_end()[0])

    def _on_time(self, event: Event) -> None:
        if event is self._timer:
            self._timer, self._fires_s = None, math.inf
            now_s = self.env.now
            self._catch_up(now_s)
            left = self._end_due(now_s)
            if self._present:
                self._plan(now_s, left)

    def _end_due(self, now_s: float) -> float:
        """End all transfers whose end is now; return the work until the next end, 0 if no transfer is left."""
        slack_s = SAME_INSTANT_ULPS * math.ulp(now_s)
        present, next_end = self._present, self.discipline.next_end
        while present:
            left, job = next_end()
            if left > slack_s * self._rate_hz:
                return left
            transfer = present[job]
            work = transfer.work
            transfer.work_done = work
            if self.discipline.counts_air:
                transfer.occupied = self.discipline.occupied(transfer)
            self._received += work
            self._let_go(transfer, now_s)
            transfer.send_on()
        return 0.0

    def _let_go(self, transfer: SpectrumTransfer, now_s: float) -> None:
        del self._present[transfer]
        self.discipline.leave(transfer)
        self._rate_hz = self.discipline.rate_hz(self.bandwidth_hz)
        if transfer.began_s is None:
            del self._waiting[transfer]
        if self._waiting:
            self._begin_service(now_s)
        self._came_s -= transfer.came_s
        self._sojourn_s += now_s - transfer.came_s
        if not self._present:
            self._came_s = 0.0
