"""Disciplines under which a hertz carries more, or less, the more clients are present: equal shares with gains."""

from abc import abstractmethod
from collections.abc import Collection
from typing import ClassVar, Final

import numpy as np

from fedsim.network.medium.disciplines import Discipline, Job, JobRows
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.shares.multiuser_diversity import GainTable
from fedsim.units import Positive, Seconds

FAIR_WINDOW_S: Final = 1.0
"""Time over which a proportional-fair scheduler's average forgets all but 1/e: 1,000 slots of a millisecond."""


class GainSharing(Discipline):
    """Equal shares for all jobs present, with another gain of each the more jobs are present."""

    asked_at_each_join: ClassVar[bool] = False

    def __init__(self, gains: GainTable | None = None) -> None:
        self.gains = gains
        # Of each job: work that is left, the time given to each client before it, and the kind of its client.
        self._jobs = JobRows(3)
        # Time given to each client since the medium was empty.
        self._time = 0.0
        # The gain of each job among those present, and their sum; 0 until it is computed.
        self._gain, self._gain_sum = np.zeros(0), 0.0

    def prepare(self, channel: Channel) -> None:
        if self.gains is None:
            self.gains = self.gains_of(channel)

    @abstractmethod
    def gains_of(self, channel: Channel) -> GainTable | None:
        """Return the gains of the rule in a cell."""

    def rate_hz(self, bandwidth_hz: float) -> float:
        users = len(self._jobs.jobs)
        return bandwidth_hz * self._look_up_gains() / users if users else bandwidth_hz

    def join(self, job: Job) -> None:
        if self.gains is None:
            raise RuntimeError(f"{type(self).__name__} needs gains, or prepare() with a channel")
        if not self._jobs.jobs:
            self._time = 0.0
        self._jobs.add(job, job.work, self._time, self.gains.kind(job.bits / job.work))
        self._gain_sum = 0.0

    def leave(self, job: Job) -> None:
        self._jobs.remove(job)
        self._gain_sum = 0.0

    def advance(self, work: float) -> None:
        step = work / self._look_up_gains()
        self._time += step
        self._jobs.rows[0] -= step * self._gain

    def served(self, job: Job) -> float:
        return job.work - max(0.0, self._jobs.rows.item(0, self._jobs.place(job)))

    def occupied(self, job: Job) -> float:
        return self._time - self._jobs.rows.item(1, self._jobs.place(job))

    def next_end(self) -> tuple[float, Job]:
        in_all = self._look_up_gains()
        time = self._jobs.rows[0] / self._gain
        first = int(time.argmin())
        return max(0.0, time.item(first) * in_all), self._jobs.jobs[first]

    def in_service(self) -> Collection[Job]:
        return self._jobs.joined.keys()

    def _look_up_gains(self) -> float:
        """Return the sum of the gains of the jobs present."""
        if not self._gain_sum and self.gains is not None:
            kind = self._jobs.rows[2].astype(np.int64)
            self._gain = self.gains.among(kind.size)[kind]
            self._gain_sum = float(np.add.reduce(self._gain))
        return self._gain_sum


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
