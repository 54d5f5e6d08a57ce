"""One call of an executor: which of its jobs goes to a worker next, and which results are there."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

from fedsim.errors import PartError
from fedsim.learning.executors.workers.channel import from_bytes
from fedsim.learning.executors.workers.messages import Reply, Scores, SetupMessage, Trainings
from fedsim.learning.executors.workers.segments import Segment

# A message takes about a fifth of a millisecond in all, so that it costs at most a few per cent of its work.
_SHORTEST_S: Final = 0.005
# Beyond this a message costs nothing worth mention, and a result comes back sooner.
_LONGEST_S: Final = 0.1


class Setup:
    """A training setup for workers."""

    def __init__(self, message: SetupMessage, data: Segment) -> None:
        self.message, self.data = message, data


class Rate:
    """Seconds for a unit of cost, as measured; the latest measurements count most."""

    def __init__(self) -> None:
        self.unit_s: float | None = None

    def observe(self, cost: float, duration_s: float) -> None:
        now = duration_s / cost
        self.unit_s = now if self.unit_s is None else 0.7 * self.unit_s + 0.3 * now


class Call(ABC):
    """Jobs under way."""

    def __init__(
        self,
        setup: Setup,
        costs: Sequence[float],
        rate: Rate,
        *,
        workers: int,
        window: int,
        segments: Sequence[Segment],
        urgency: int,
    ) -> None:
        self.setup, self.workers, self.segments, self.urgency = setup, workers, [setup.data, *segments], urgency
        self.size = len(costs)
        self.error: BaseException | None = None
        self._costs, self._rate, self._window, self._read = costs, rate, window, 0
        self._waiting = sorted(range(self.size), key=lambda i: -costs[i])
        self._left = sum(costs)
        self._found: dict[int, Any] = {}

    @abstractmethod
    def work(self, indices: Sequence[int]) -> Trainings | Scores:
        """Return the message about some jobs."""

    def next_jobs(self) -> list[int]:
        """Take out the jobs of the next message, the longest first; none if all are under way or too far ahead.

        A message has at most half of a worker's share of what is left, so that all workers end at about the same time.
        """
        most = self._left / (2 * self.workers)
        unit_s = self._rate.unit_s
        most = 0.0 if unit_s is None else max(min(most, _LONGEST_S / unit_s), _SHORTEST_S / unit_s)
        chosen: list[int] = []
        cost, limit = 0.0, self._read + self._window
        for i in self._waiting:
            if i < limit and (not chosen or cost + self._costs[i] <= most):
                chosen.append(i)
                cost += self._costs[i]
        taken = set(chosen)
        self._waiting = [i for i in self._waiting if i not in taken]
        self._left -= cost
        return sorted(chosen)

    def put(self, indices: Sequence[int], reply: Reply) -> None:
        """Take in a reply."""
        if isinstance(reply.found, bytes):
            error = from_bytes(reply.found)
            if isinstance(error, PartError) and error.at is not None:
                error.at = indices[error.at]
            self.error = self.error or error
            return
        self._rate.observe(sum(self._costs[i] for i in indices), reply.duration_s)
        self._found.update(zip(indices, reply.found, strict=True))

    def ready(self) -> bool:
        """Return whether the next result is there, or the call has failed."""
        return self._read in self._found or self.error is not None

    def get(self) -> Any:
        """Take out the next result, or raise what made the call fail."""
        if self.error is not None:
            raise self.error
        self._read += 1
        return self._found.pop(self._read - 1)
