"""Stations that send packets of their messages whenever they may, and lose those that overlap: pure ALOHA.

Stations on the same code and channel destroy one another's packets, unless one of them is received so much stronger
that it captures the receiver (Bor, Roedig, Voigt and Alonso, "Do LoRa low-power wide-area networks scale?", ACM MSWiM
2016). A station sends one packet in each period, and a lost one again in a later period. Packets of two stations
overlap with the probability ``2 airtime / period`` on one of some channels, whatever came before: instants and channels
are drawn anew for each packet. So a station that h others can destroy gets each packet through with the probability
``(1 - 2 d / c)^h`` for a duty cycle d and c channels, in the limit of many stations ALOHA's ``exp(-2 G)``. The medium
counts with this mean, so that rates change only when a message starts, ends or is cancelled.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import Environment, Event, call_after, call_next
from fedsim.network.medium.queued import QueuedTransfer
from fedsim.network.transfers import SharedMedium, Transfer

_SAME: Final = 1e-12
"""Share of its periods that a message may lack at its end, by rounding."""
Periods = Callable[[float], tuple[FloatArray, FloatArray]]
"""Returns for a size in bits each client's periods, and the part of the last one after its packet, shape (K,) each."""


def kept_shares(level_db: FloatArray, overlap: float, capture_db: float) -> FloatArray:
    """Return the probability that a packet of each station gets through, shape (n,)."""
    weak_db = level_db - capture_db
    # The stations above that level, among which a station counts itself unless its packets need not be stronger at all.
    harmful = level_db.size - np.searchsorted(np.sort(level_db), weak_db, side="right") - (level_db > weak_db)
    return np.asarray((1.0 - overlap) ** harmful)


class AlohaTransfer(QueuedTransfer["AlohaChannel"]):
    """A message of packets that get through with the probability `kept`."""

    __slots__ = ("_due_s", "_sent_s", "carried", "duty_cycle", "early_s", "kept", "left_s", "level_db", "whole_s")

    def __init__(
        self,
        channel: "AlohaChannel",
        bits: float,
        whole_s: float,
        early_s: float,
        level_db: float,
        delay_s: float,
        duty_cycle: float,
    ) -> None:
        super().__init__(channel, bits, delay_s)
        # Time on the air of the packets that have not got through, and of all that were sent.
        self.duty_cycle, self._due_s, self._sent_s = duty_cycle, duty_cycle * whole_s, 0.0
        self.whole_s = self.left_s = whole_s
        self.level_db, self.early_s, self.kept, self.carried = level_db, early_s, 1.0, 0.0

    def sent_bits(self) -> float:
        """Return the bits in the packets that have got through so far, on average."""
        self._medium.catch_up(self)
        return self.carried

    def on_air_s(self, elapsed_s: float) -> float:
        """Return the seconds in which packets were sent, lost ones included, on average."""
        self._medium.catch_up(self)
        return min(self._sent_s, elapsed_s)

    def until_s(self) -> float:
        """Return the time until the last packet gets through, on average."""
        return max(self.left_s / self.kept - self.early_s, 0.0) if self.kept > 0 else math.inf

    def go_on(self, elapsed_s: float) -> None:
        """Let some time pass, no longer than until the end."""
        until_s = self.until_s()
        part = min(elapsed_s / until_s, 1.0) if until_s > 0 else 1.0
        self.carried += (self.bits - self.carried) * part
        self._sent_s += part * self._due_s / self.kept if self.kept > 0 else self.duty_cycle * elapsed_s
        self._due_s *= 1.0 - part
        self.left_s -= self.kept * min(elapsed_s, until_s)


class AlohaChannel:
    """Stations of one code, whose packets destroy one another."""

    def __init__(self, env: Environment, overlap: float, capture_db: float) -> None:
        self.env, self._overlap, self._capture_db = env, overlap, capture_db
        self._present: dict[AlohaTransfer, None] = {}
        self._seen_s = float(env.now)
        self._timer: Event | None = None
        self._changed = False

    def send(
        self, bits: float, whole_s: float, early_s: float, level_db: float, delay_s: float, duty_cycle: float
    ) -> AlohaTransfer:
        transfer = AlohaTransfer(self, bits, whole_s, early_s, level_db, delay_s, duty_cycle)
        self.start(transfer)
        return transfer

    def start(self, transfer: AlohaTransfer) -> None:
        """Start a message, which never ends if its packets take for ever."""
        if transfer.whole_s < math.inf:
            self._catch_up()
            self._present[transfer] = None
            self._change()

    def forget(self, transfer: AlohaTransfer) -> None:
        if transfer in self._present:
            self._catch_up()
            del self._present[transfer]
            self._change()

    def catch_up(self, transfer: AlohaTransfer) -> None:
        """Count for a message what has got through up to now."""
        if transfer in self._present:
            self._catch_up()

    def _catch_up(self) -> None:
        elapsed_s, self._seen_s = float(self.env.now) - self._seen_s, float(self.env.now)
        if elapsed_s > 0:
            for transfer in self._present:
                transfer.go_on(elapsed_s)

    def _change(self) -> None:
        """Compute probabilities and the next end after all changes of one event."""
        if not self._changed:
            self._changed = True
            call_next(self.env, self._on_change)

    def _on_change(self, _event: Event) -> None:
        self._changed, self._timer = False, None
        if not self._present:
            return
        level_db = np.array([transfer.level_db for transfer in self._present])
        for transfer, kept in zip(self._present, kept_shares(level_db, self._overlap, self._capture_db), strict=True):
            transfer.kept = float(kept)
        next_s = min(transfer.until_s() for transfer in self._present)
        if next_s < math.inf:
            self._timer = call_after(self.env, next_s, self._on_time)

    def _on_time(self, event: Event) -> None:
        if event is not self._timer:
            return
        self._catch_up()
        for transfer in tuple(self._present):
            if transfer.until_s() <= _SAME * max(transfer.whole_s, float(self.env.now)):
                del self._present[transfer]
                transfer.carried = transfer.bits
                transfer.send_on()
        self._change()


@dataclass(frozen=True)
class Stations:
    """The K clients of one direction."""

    code: IntArray
    level_db: FloatArray
    delay_s: FloatArray
    duty_cycle: float
    periods: Periods


class AlohaMedium(SharedMedium):
    def __init__(self, env: Environment, down: Stations, up: Stations, overlap: float, capture_db: float) -> None:
        self._down, self._up = down, up
        self._free = AlohaChannel(env, 0.0, capture_db)
        self._of_code = {code: AlohaChannel(env, overlap, capture_db) for code in np.unique(up.code).tolist()}

    def downlink(self, client: int, bits: float) -> Transfer:
        return _send(self._free, self._down, client, bits)

    def uplink(self, client: int, bits: float) -> Transfer:
        return _send(self._of_code[int(self._up.code[client])], self._up, client, bits)


def _send(channel: AlohaChannel, stations: Stations, client: int, bits: float) -> AlohaTransfer:
    whole_s, early_s = (float(times_s[client]) for times_s in stations.periods(bits))
    level_db, delay_s = float(stations.level_db[client]), float(stations.delay_s[client])
    return channel.send(bits, whole_s, early_s, level_db, delay_s, stations.duty_cycle)
