"""A capacity that changes with time and that all transfers in progress share equally, on the clock.

The bits that the capacity carries are a known function of time. Counted by them, and not by seconds, the transfers
share a constant capacity, so that the discipline of equal shares serves here as it does on a spectrum.
"""

import math
from typing import Final, Protocol

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import call_after
from fedsim.network.medium.disciplines import EqualSharing, Job
from fedsim.network.medium.queued import QueuedTransfer
from fedsim.network.transfers import SharedMedium, Transfer

_FIRST: Final = np.zeros(1, dtype=np.int64)
_SAME: Final = 1e-12
"""Share of its bits that a transfer may lack at its end, by rounding."""


class Capacity(Protocol):
    def between_bits(self, trace: IntArray, from_s: FloatArray, until_s: FloatArray) -> FloatArray: ...

    def transfer_s(self, trace: IntArray, start_s: FloatArray, bits: float) -> FloatArray: ...

    def between_s(self, trace: IntArray, from_s: FloatArray, until_s: FloatArray) -> FloatArray: ...


class TracedTransfer(QueuedTransfer["TracedCapacity"]):
    """A job of its discipline, whose work is its bits."""

    __slots__ = ("air_s", "carried", "work")

    def __init__(self, medium: "TracedCapacity", bits: float, delay_s: float) -> None:
        super().__init__(medium, bits, delay_s)
        self.work, self.carried, self.air_s = bits, 0.0, 0.0

    def sent_bits(self) -> float:
        return min(self.bits, self._medium.carried_bits(self))

    def on_air_s(self, elapsed_s: float) -> float:
        """Return the transfer's share of the time in which the capacity is above 0."""
        return min(self._medium.on_air_s(self), elapsed_s)


class TracedCapacity:
    """The first trace of some capacities, shared equally by the transfers in progress."""

    def __init__(self, env: Environment, capacity: Capacity) -> None:
        self.env, self._capacity = env, capacity
        self._discipline = EqualSharing()
        self._present: dict[Job, TracedTransfer] = {}
        self._seen_s = float(env.now)
        # Seconds with a capacity above 0 that each transfer present since the start would have had.
        self._air_s = 0.0
        self._timer: Event | None = None

    def send(self, bits: float, delay_s: float) -> TracedTransfer:
        transfer = TracedTransfer(self, bits, delay_s)
        self.start(transfer)
        return transfer

    def start(self, transfer: TracedTransfer) -> None:
        self._catch_up()
        if transfer.bits > 0:
            self._present[transfer] = transfer
            transfer.air_s = -self._air_s
            self._discipline.join(transfer)
            self._plan()
        else:
            transfer.send_on()

    def forget(self, transfer: TracedTransfer) -> None:
        if transfer in self._present:
            self._catch_up()
            self._let_go(transfer)
            self._plan()

    def carried_bits(self, transfer: TracedTransfer) -> float:
        if transfer not in self._present:
            return transfer.carried
        self._catch_up()
        return self._discipline.served(transfer)

    def on_air_s(self, transfer: TracedTransfer) -> float:
        if transfer not in self._present:
            return transfer.air_s
        self._catch_up()
        return self._air_s + transfer.air_s

    def _catch_up(self) -> None:
        now_s = float(self.env.now)
        if now_s > self._seen_s:
            if self._present:
                seen, now = np.array([self._seen_s]), np.array([now_s])
                carried = self._capacity.between_bits(_FIRST, seen, now).item()
                self._air_s += self._capacity.between_s(_FIRST, seen, now).item() / len(self._present)
                # Rounding must not carry more than is left until the next end, whose timer is due now.
                self._discipline.advance(min(max(carried, 0.0), self._discipline.next_end()[0]))
            self._seen_s = now_s

    def _plan(self) -> None:
        self._timer = None
        if self._present:
            left = max(self._discipline.next_end()[0], 0.0)
            delay_s = self._capacity.transfer_s(_FIRST, np.array([self._seen_s]), left).item()
            if math.isfinite(delay_s):
                self._timer = call_after(self.env, delay_s, self._on_time)

    def _on_time(self, event: Event) -> None:
        if event is not self._timer:
            return
        self._catch_up()
        # What the timer was for ends now, whatever rounding says.
        left = self._discipline.next_end()[0]
        if left > 0:
            self._discipline.advance(left)
        while self._present:
            left, job = self._discipline.next_end()
            transfer = self._present[job]
            if left > _SAME * transfer.bits * len(self._present):
                break
            self._let_go(transfer)
            transfer.carried = transfer.bits
            transfer.send_on()
        self._plan()

    def _let_go(self, transfer: TracedTransfer) -> None:
        transfer.carried = self._discipline.served(transfer)
        transfer.air_s += self._air_s
        del self._present[transfer]
        self._discipline.leave(transfer)


class TracedMedium(SharedMedium):
    def __init__(self, env: Environment, downlink: Capacity, uplink: Capacity, delay_s: list[float]) -> None:
        self._down, self._up = TracedCapacity(env, downlink), TracedCapacity(env, uplink)
        self._delay_s = delay_s

    def downlink(self, client: int, bits: float) -> Transfer:
        return self._down.send(bits, self._delay_s[client])

    def uplink(self, client: int, bits: float) -> Transfer:
        return self._up.send(bits, self._delay_s[client])
