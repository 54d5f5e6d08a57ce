"""A shared medium whose users are served when their fading is at its best."""

from typing import Protocol

import numpy as np
from simpy import Environment

from fedsim.arrays import FloatArray
from fedsim.network.medium.spectrum import SharedSpectrum, SpectrumTransfer


class Gains(Protocol):
    """How many times more work a hertz does for users when it is theirs in good moments only."""

    def kind(self, efficiency: float) -> int:
        """Return the kind of a user of this mean efficiency in bit/s/Hz."""
        ...

    def of(self, users: int) -> FloatArray:
        """Return the gain of each kind, at least 1, while so many of any kind are present."""
        ...


class ProportionalFair(SharedSpectrum):
    """Everybody present has the same share of the time, and more work done in it the more are present.

    As gains differ between users, so do the speeds at which their work is done, and no common clock tells their ends;
    coming, going and ending are array operations over those present.

    Parameters
    ----------
    env : Environment
    bandwidth_hz : float > 0
    gains : for each user present (`fedsim.network.radio.multiuser_diversity.DiversityGain`)
    """

    def __init__(self, env: Environment, bandwidth_hz: float, gains: Gains) -> None:
        super().__init__(env, bandwidth_hz)
        self._gains = gains
        self._members: list[SpectrumTransfer] = []
        # Rows as in `_members`; what stands beyond them does not matter.
        self._left_hz_s = np.zeros(8)
        self._kind = np.zeros(8, dtype=np.intp)
        self._gain = np.ones(0)
        self._gain_sum = 0.0

    def rate_hz(self) -> float:
        """Return the bandwidth, times the mean gain of those who are present."""
        return self.bandwidth_hz * self._gain_sum / len(self._members) if self._members else self.bandwidth_hz

    def _join(self, transfer: SpectrumTransfer) -> None:
        row = len(self._members)
        if row == self._kind.size:
            self._left_hz_s, self._kind = (np.concatenate([rows, rows]) for rows in (self._left_hz_s, self._kind))
        transfer.began_s = transfer.came_s
        self._members.append(transfer)
        self._left_hz_s[row], self._kind[row] = transfer.work, self._gains.kind(transfer.bits / transfer.work)
        self._look()

    def _drop(self, transfer: SpectrumTransfer) -> None:
        row, last = self._members.index(transfer), len(self._members) - 1
        del self._members[row]
        for rows in (self._left_hz_s, self._kind):
            rows[row:last] = rows[row + 1 : last + 1]
        self._look()

    def _look(self) -> None:
        """Find the gains of those who are present now."""
        users = len(self._members)
        if users:
            self._gain = self._gains.of(users)[self._kind[:users]]
            self._gain_sum = float(self._gain.sum())

    def _work(self, work: float) -> None:
        left = self._left_hz_s[: len(self._members)]
        left -= self._gain * (work / self._gain_sum)
        np.maximum(left, 0.0, out=left)

    def _served(self, transfer: SpectrumTransfer) -> float:
        return transfer.work - float(self._left_hz_s[self._members.index(transfer)])

    def _left(self) -> float:
        return float((self._left_hz_s[: len(self._members)] / self._gain).min()) * self._gain_sum

    def _next(self) -> SpectrumTransfer:
        return self._members[int((self._left_hz_s[: len(self._members)] / self._gain).argmin())]

    def _there(self) -> list[SpectrumTransfer]:
        return list(self._members)
