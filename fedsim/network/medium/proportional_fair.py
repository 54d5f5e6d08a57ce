"""The discipline of a scheduler that serves each client in the blocks in which its fading is at its best."""

from collections.abc import Collection

import numpy as np

from fedsim.network.medium.disciplines import Discipline, Job
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.multiuser_diversity import DiversityGain


class ProportionalFair(Discipline):
    """Equal shares of the time for all jobs present, with more work done in it the more jobs are present.

    As gains differ between clients, so do the speeds at which their work is done, and no common clock tells their ends;
    joining, leaving and ending are array operations over the jobs present.

    Parameters
    ----------
    gains : factor by which a hertz does more work, for each client and number of clients; None takes it from `prepare`
    """

    def __init__(self, gains: DiversityGain | None = None) -> None:
        self.gains = gains
        self._jobs: list[Job] = []
        # Rows as in `_jobs`; rows beyond have no meaning.
        self._remaining = np.zeros(8)
        self._kind = np.zeros(8, dtype=np.intp)
        self._gain = np.ones(0)
        self._gain_sum = 0.0

    def prepare(self, channel: Channel) -> None:
        """Take the gains of the cell's rate law, at each client's own mean SNR."""
        if self.gains is None:
            self.gains = channel.diversity_gain

    def rate_hz(self, bandwidth_hz: float) -> float:
        """Return the bandwidth times the mean gain of the jobs present."""
        return bandwidth_hz * self._gain_sum / len(self._jobs) if self._jobs else bandwidth_hz

    def join(self, job: Job) -> None:
        """Add a job in O(n)."""
        row = len(self._jobs)
        if row == self._kind.size:
            self._remaining, self._kind = (np.concatenate([rows, rows]) for rows in (self._remaining, self._kind))
        self._jobs.append(job)
        self._remaining[row], self._kind[row] = job.work, self._known_gains().kind(job.bits / job.work)
        self._update_gains()

    def leave(self, job: Job) -> None:
        """Remove a job in O(n)."""
        if job not in self._jobs:
            return
        row, last = self._jobs.index(job), len(self._jobs) - 1
        del self._jobs[row]
        for rows in (self._remaining, self._kind):
            rows[row:last] = rows[row + 1 : last + 1]
        self._update_gains()

    def advance(self, work: float) -> None:
        """Give each job a part of the work in proportion to its gain."""
        remaining = self._remaining[: len(self._jobs)]
        remaining -= self._gain * (work / self._gain_sum)
        np.maximum(remaining, 0.0, out=remaining)

    def served(self, job: Job) -> float:
        """Return the work of the job less what remains of it."""
        return job.work - float(self._remaining[self._jobs.index(job)])

    def next_end(self) -> tuple[float, Job]:
        """Return the least time until an end as work of the medium, and the job that ends then."""
        share = self._remaining[: len(self._jobs)] / self._gain
        row = int(share.argmin())
        return float(share[row]) * self._gain_sum, self._jobs[row]

    def in_service(self) -> Collection[Job]:
        """Return all jobs present."""
        return self._jobs

    def _update_gains(self) -> None:
        """Look up the gains of the jobs present for their number."""
        users = len(self._jobs)
        if users:
            self._gain = self._known_gains().of(users)[self._kind[:users]]
            self._gain_sum = float(self._gain.sum())

    def _known_gains(self) -> DiversityGain:
        if self.gains is None:
            raise RuntimeError("a proportional-fair discipline needs gains, or prepare() with a channel")
        return self.gains
