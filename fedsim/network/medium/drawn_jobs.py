"""The transfers present on a medium whose fading is drawn, as arrays, with the gains of the blocks ahead."""

import math
from typing import Final, Protocol

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.network.medium.queued import Carrier, QueuedTransfer
from fedsim.network.radio.channel import Channel

Rows = slice | IntArray
"""Some of the transfers present: all of the first n, or by their rows."""

_FIRST_ROWS: Final = 16
_GRAIN_ULPS: Final = 8


class DrawnCarrier(Carrier["DrawnTransfer"], Protocol):
    bandwidth_hz: float

    def sent_bits(self, transfer: "DrawnTransfer") -> float: ...

    def work_done(self, transfer: "DrawnTransfer") -> float: ...


class DrawnTransfer(QueuedTransfer[DrawnCarrier]):
    __slots__ = ("_sent_bits", "carries", "client", "row")

    def __init__(self, medium: DrawnCarrier, client: int, bits: float, delay_s: float) -> None:
        super().__init__(medium, bits, delay_s)
        self.client = client
        self.row, self._sent_bits, self.carries = -1, 0.0, True

    def sent_bits(self) -> float:
        return self._sent_bits if self.row < 0 else self._medium.sent_bits(self)

    def on_air_s(self, elapsed_s: float) -> float:
        work = self.work_done if self.row < 0 else self._medium.work_done(self)
        return min(work / self._medium.bandwidth_hz, elapsed_s) if self.carries else elapsed_s

    def leave(self, sent_bits: float, work_done: float) -> None:
        self.row, self._sent_bits, self.work_done = -1, sent_bits, work_done


class Jobs:
    """Transfers present, one a row; the rows of those that leave are filled with the last one."""

    def __init__(self, channel: Channel, *, rates: bool) -> None:
        self.channel = channel
        self.n = 0
        self.owner: list[DrawnTransfer] = []
        self._numbers = np.zeros((8, _FIRST_ROWS))
        self._counts = np.zeros((3, _FIRST_ROWS), dtype=np.int64)
        self._gains, self._drawn = np.zeros((0, _FIRST_ROWS)), np.zeros(_FIRST_ROWS, dtype=np.bool_)
        self._rates = np.zeros((0, _FIRST_ROWS)) if rates else None
        self._base = self._joined = self._missing = self.oldest_block = 0
        self._unbegun: list[DrawnTransfer] = []
        self._name_columns()

    def _name_columns(self) -> None:
        self.left, self.bits, self.grain, self.work, self.snr, self.densest, *others = self._numbers
        self.efficiency, self.average_bps = others
        self.client, self.order, self.first_block = self._counts

    def add(self, owner: DrawnTransfer, client: int, bits: float, efficiency: float) -> int:
        row, channel = self.n, self.channel
        if row == self.left.size:
            self._grow()
        densest = 1.0 if channel.densest is None else channel.densest[client]
        grain = _GRAIN_ULPS * math.ulp(bits)
        self._numbers[:, row] = bits, bits, grain, 0.0, channel.snr[client], densest, efficiency, 0.0
        self._joined += 1
        self._counts[:, row] = client, self._joined, -1
        self._drawn[row] = False
        self._missing += 1
        self.owner.append(owner)
        self._unbegun.append(owner)
        self.n += 1
        return row

    def remove(self, row: int) -> DrawnTransfer | None:
        """Remove a transfer, and return the owner of the one that has its row now; None if there is none."""
        last = self.n = self.n - 1
        moved = self.owner.pop()
        self._missing -= not self._drawn[row]
        if row == last:
            return None
        self.owner[row] = moved
        self._numbers[:, row] = self._numbers[:, last]
        self._counts[:, row] = self._counts[:, last]
        self._gains[:, row], self._drawn[row] = self._gains[:, last], self._drawn[last]
        if self._rates is not None:
            self._rates[:, row] = self._rates[:, last]
        return moved

    def begin(self, rows: Rows, block: int, now_s: float) -> None:
        """Stamp the transfers whose service begins now."""
        if isinstance(rows, slice):
            fresh, self._unbegun = self._unbegun, []
        else:
            self._unbegun.clear()
            fresh = [self.owner[row] for row in rows.tolist() if self.first_block[row] < 0]
        if not fresh:
            return
        if self.first_block[: self.n].max() < 0:
            self.oldest_block = block
        for owner in fresh:
            if owner.row >= 0 and owner.began_s is None:
                owner.began_s = now_s
                self.first_block[owner.row] = block

    def holds(self, block: int) -> bool:
        """Return whether gains of a block are drawn for those of the transfers that were present then."""
        return 0 <= block - self._base < len(self._gains)

    def gains(self, rows: Rows, block: int, wanted: int, at_once: int) -> tuple[FloatArray, FloatArray | None]:
        """Return gains for as many blocks as wanted or fewer, and rates of the whole band if computed."""
        if not self.holds(block):
            self._base = block
            self._gains = np.empty((max(wanted, at_once), self.left.size))
            if self._rates is not None:
                self._rates = np.empty_like(self._gains)
            self._drawn[: self.n] = False
            self._missing = self.n
        passed = block - self._base
        if self._missing:
            missing = _rows_of(~self._drawn[rows], rows)
            if missing.size:
                blocks = np.arange(block, self._base + len(self._gains))
                drawn = self.channel.share_rates.draw(self.client[missing], blocks[:, None])
                self._gains[passed:, missing] = drawn
                if self._rates is not None:
                    rate = self.channel.share_rates.rate_bps(self.snr[missing], self.efficiency[missing], drawn)
                    self._rates[passed:, missing] = rate
                self._drawn[missing] = True
                self._missing -= missing.size
        chosen = slice(passed, passed + wanted), rows
        return self._gains[chosen], None if self._rates is None else self._rates[chosen]

    def _grow(self) -> None:
        more = self.left.size
        self._numbers = np.concatenate([self._numbers, np.zeros((len(self._numbers), more))], axis=1)
        self._counts = np.concatenate([self._counts, np.zeros((len(self._counts), more), dtype=np.int64)], axis=1)
        self._gains = np.concatenate([self._gains, np.empty((len(self._gains), more))], axis=1)
        if self._rates is not None:
            self._rates = np.concatenate([self._rates, np.empty((len(self._rates), more))], axis=1)
        self._drawn = np.concatenate([self._drawn, np.zeros(more, dtype=np.bool_)])
        self._name_columns()


def _rows_of(chosen: BoolArray, rows: Rows) -> IntArray:
    found = np.flatnonzero(chosen)
    return found if isinstance(rows, slice) else rows[found]
