"""The transfers present on a medium as arrays, with the fading gains of the blocks ahead."""

from typing import Any, Final

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.network.radio.channel import Channel

Rows = slice | IntArray
"""Some of the transfers present: all of the first n, or by their rows."""

_FIRST_ROWS: Final = 16


class Jobs:
    """Transfers present, one a row; the rows of those that leave are filled with the last one.

    Parameters
    ----------
    channel : radio of the clients

    Attributes
    ----------
    n : number of transfers present; all arrays have rows beyond it
    left, bits : bits that are left and in all
    work : hertz times seconds that a transfer has had
    snr, densest, efficiency : mean SNR with the whole band, greatest density of power, and mean bit/s/Hz of the client
    average_bps : what a scheduler remembers of a client's rate; 0 before it has seen the client
    client, order : id of the client, and rising number of the transfer
    first_block : fading block in which the service began; -1 before
    owner : what sends each transfer
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.n = 0
        self.owner: list[Any] = []
        self._numbers = np.zeros((7, _FIRST_ROWS))
        self._counts = np.zeros((3, _FIRST_ROWS), dtype=np.int64)
        self._gains, self._drawn = np.zeros((_FIRST_ROWS, 0)), np.zeros(_FIRST_ROWS, dtype=np.bool_)
        self._base, self._width, self._joined = 0, 0, 0
        self._name_columns()

    def _name_columns(self) -> None:
        self.left, self.bits, self.work, self.snr, self.densest, self.efficiency, self.average_bps = self._numbers
        self.client, self.order, self.first_block = self._counts

    def add(self, owner: Any, client: int, bits: float, efficiency: float) -> int:
        """Add a transfer and return its row.

        Parameters
        ----------
        owner : what sends it
        client, bits : id, and size > 0
        efficiency : mean of the client's link in bit/s/Hz
        """
        row, channel = self.n, self.channel
        if row == self.left.size:
            self._grow()
        densest = 1.0 if channel.densest is None else channel.densest[client]
        self._numbers[:, row] = bits, bits, 0.0, channel.snr[client], densest, efficiency, 0.0
        self._joined += 1
        self._counts[:, row] = client, self._joined, -1
        self._drawn[row] = False
        self.owner.append(owner)
        self.n += 1
        return row

    def remove(self, row: int) -> Any:
        """Remove a transfer, and return the owner of the one that has its row now; None if there is none."""
        last = self.n = self.n - 1
        moved = self.owner.pop()
        if row == last:
            return None
        self.owner[row] = moved
        self._numbers[:, row] = self._numbers[:, last]
        self._counts[:, row] = self._counts[:, last]
        self._gains[row], self._drawn[row] = self._gains[last], self._drawn[last]
        return moved

    def gains(self, rows: Rows, block: int, wanted: int) -> FloatArray:
        """Return the gains of some transfers from a block on, for as many blocks as wanted or fewer, shape (m, blocks).

        Parameters
        ----------
        rows : of the transfers, m of them
        block : number of the first block, at least that of the call before
        wanted : number of blocks, >= 1
        """
        passed = block - self._base
        if not 0 <= passed < self._width:
            self._base, self._width, passed = block, wanted, 0
            self._gains = np.empty((self.left.size, wanted))
            self._drawn[:] = False
        missing = _rows_of(~self._drawn[rows], rows)
        if missing.size:
            blocks = np.arange(block, self._base + self._width)
            self._gains[missing, passed:] = self.channel.gain(self.client[missing, None], blocks)
            self._drawn[missing] = True
        return self._gains[rows, passed : passed + wanted]

    def _grow(self) -> None:
        more = self.left.size
        self._numbers = np.concatenate([self._numbers, np.zeros((len(self._numbers), more))], axis=1)
        self._counts = np.concatenate([self._counts, np.zeros((len(self._counts), more), dtype=np.int64)], axis=1)
        self._gains = np.concatenate([self._gains, np.empty((more, self._gains.shape[1]))])
        self._drawn = np.concatenate([self._drawn, np.zeros(more, dtype=np.bool_)])
        self._name_columns()


def _rows_of(chosen: BoolArray, rows: Rows) -> IntArray:
    """Return the rows of chosen ones among some rows."""
    found = np.flatnonzero(chosen)
    return found if isinstance(rows, slice) else rows[found]
