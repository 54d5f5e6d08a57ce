"""The discipline of a scheduler that serves each client in the blocks in which its fading is at its best."""

from collections.abc import Collection
from typing import ClassVar, Final

import numpy as np

from fedsim.network.medium.disciplines import Discipline, Job
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.multiuser_diversity import DiversityGain

_UNKNOWN: Final = -1


class ProportionalFair(Discipline):
    """Equal shares of the time for all jobs present, with more work done in it the more jobs are present.

    As gains differ between clients, so do the speeds at which their work is done, and no common clock tells their ends:
    a change of the jobs present costs a few array operations over them. These are done once for all jobs that join in
    one event, when the medium asks for a rate or an end.

    Parameters
    ----------
    gains : factor by which a hertz does more work, for each client and number of clients; None takes it from `prepare`
    """

    asked_at_each_join: ClassVar[bool] = False

    def __init__(self, gains: DiversityGain | None = None) -> None:
        self.gains = gains
        self._jobs: list[Job] = []
        self._present: dict[Job, None] = {}
        # One element for each of `_jobs`, in their order; elements beyond have no meaning.
        self._remaining, self._gain, self._scratch = np.zeros((3, 8))
        self._kind = np.zeros(8, dtype=np.intp)
        self._gain_sum = 0.0
        self._known = 0
        # Remaining work, gains and scratch of the jobs present alone, while their gains are known.
        self._present_rows = self._remaining[:0], self._gain[:0], self._scratch[:0]
        # The next end as work of the medium and its place, until a job joins or leaves.
        self._left, self._row = 0.0, _UNKNOWN

    def prepare(self, channel: Channel) -> None:
        """Take the gains of the cell's rate law, at each client's own mean SNR."""
        if self.gains is None:
            self.gains = channel.diversity_gain

    def rate_hz(self, bandwidth_hz: float) -> float:
        """Return the bandwidth times the mean gain of the jobs present."""
        self._look_up_gains()
        return bandwidth_hz * self._gain_sum / len(self._jobs) if self._jobs else bandwidth_hz

    def join(self, job: Job) -> None:
        """Add a job in O(1)."""
        row = len(self._jobs)
        if row == self._kind.size:
            self._remaining, self._kind, self._gain, self._scratch = (
                np.concatenate([rows, rows]) for rows in (self._remaining, self._kind, self._gain, self._scratch)
            )
        self._jobs.append(job)
        self._present[job] = None
        self._remaining[row], self._kind[row] = job.work, self._known_gains().kind(job.bits / job.work)
        self._known, self._row = 0, _UNKNOWN

    def leave(self, job: Job) -> None:
        """Remove a job in O(n)."""
        if job not in self._present:
            return
        row, last = self._row, len(self._jobs) - 1
        if row == _UNKNOWN or self._jobs[row] is not job:
            row = self._jobs.index(job)
        del self._jobs[row], self._present[job]
        for rows in (self._remaining, self._kind):
            rows[row:last] = rows[row + 1 : last + 1]
        self._known, self._row = 0, _UNKNOWN

    def advance(self, work: float) -> None:
        """Give each job a part of the work in proportion to its gain."""
        self._look_up_gains()
        remaining, gain, done = self._present_rows
        np.multiply(gain, work / self._gain_sum, done)
        np.subtract(remaining, done, remaining)
        self._left = max(0.0, self._left - work)

    def served(self, job: Job) -> float:
        """Return the work of the job less what remains of it."""
        return job.work - max(0.0, float(self._remaining[self._jobs.index(job)]))

    def next_end(self) -> tuple[float, Job]:
        """Return the least time until an end as work of the medium, and the job that ends then."""
        if self._row == _UNKNOWN:
            self._look_up_gains()
            share = np.divide(*self._present_rows)
            self._row = row = int(share.argmin())
            self._left = max(0.0, float(share[row])) * self._gain_sum
        return self._left, self._jobs[self._row]

    def in_service(self) -> Collection[Job]:
        """Return all jobs present."""
        return self._present.keys()

    def _look_up_gains(self) -> None:
        """Look up the gains of the jobs present for their number, unless they are known."""
        users = len(self._jobs)
        if self._known != users:
            self._known, gain = users, self._gain[:users]
            # Kinds are in range, and NumPy takes them without a copy if it need not check.
            self._known_gains().of(users).take(self._kind[:users], out=gain, mode="clip")
            self._gain_sum = float(np.add.reduce(gain))
            self._present_rows = self._remaining[:users], gain, self._scratch[:users]

    def _known_gains(self) -> DiversityGain:
        if self.gains is None:
            raise RuntimeError("a proportional-fair discipline needs gains, or prepare() with a channel")
        return self.gains
