"""Jobs of one call in shares for workers; these become smaller the less is left, so that all end at about one time."""

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from fedsim.arrays import FloatArray, Vector
from fedsim.errors import PartError
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.chunks import Chunk, evaluated
from fedsim.learning.executors.contracts import EvaluationJob, TrainingJob, TrainingResult, TrainingSetup
from fedsim.learning.executors.workers.portable import from_bytes

_SHARES: Final = 3
"""Part of a worker's share of what is left that it takes at once."""
NO_MODEL: Final = np.empty(0, dtype=np.float32)
"""In place of a model that is sent once for all jobs."""


class SpreadingExecutor(ABC):
    """Trains and evaluates by workers."""

    fingerprint: str
    max_batch: int

    def __init__(self, setup: TrainingSetup) -> None:
        self._run = setup

    def train(self, jobs: Sequence[TrainingJob]) -> list[TrainingResult]:
        if not jobs:
            return []
        local = self._run.local
        samples = local.work_samples([job.rows.size for job in jobs], [job.work for job in jobs])
        # A job's fixed part is about that of a batch.
        found: list[TrainingResult] = self._computed(jobs, (samples + local.batch_size).tolist())
        for result in found:
            result.difference.flags.writeable = False
        return found

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> list[Evaluation]:
        return evaluated(jobs, self._run, self._scores)

    def _scores(self, chunks: Sequence[Chunk]) -> list[FloatArray]:
        return self._computed(chunks, [float(one.size) for one in chunks])

    @abstractmethod
    def _computed(self, jobs: Sequence[Any], costs: Sequence[float]) -> list[Any]:
        """Return the results of trainings or chunks, in their order."""


def unlike(jobs: Sequence[Any]) -> tuple[list[Vector], list[int]]:
    """Return the different models of jobs, and the place of each job's."""
    models = {id(job.base): job.base for job in jobs}
    places = dict(zip(models, range(len(models)), strict=True))
    return list(models.values()), [places[id(job.base)] for job in jobs]


def spread(
    costs: Sequence[float],
    workers: int,
    there: Callable[[int, Sequence[int]], Any],
    *,
    here: Callable[[int], Any] | None = None,
    ready: Callable[[int], bool] = lambda _: True,
    end: Callable[[], None],
) -> list[Any]:
    """Return the results of all jobs, of which workers take shares, and this process one after the other.

    A worker is called from a thread of its own, whenever it is ready. ``end`` is called at an interrupt.
    """
    waiting, found = _Waiting(costs, workers + (here is not None)), dict[int, Any]()

    def feed(worker: int) -> None:
        try:
            while waiting.any():
                if ready(worker) and (share := waiting.share()):
                    found.update(zip(share, _sound(there(worker, share), share), strict=True))
        finally:
            waiting.clear()  # after a failure nothing more begins

    with ThreadPoolExecutor(max(1, workers)) as threads:
        try:
            feeding = [threads.submit(feed, worker) for worker in range(workers)]
            while here is not None and (index := waiting.one()) is not None:
                found[index] = here(index)
            for one in feeding:
                one.result()
        except BaseException as error:
            waiting.clear()
            if not isinstance(error, Exception):
                end()
            raise
    return [found[i] for i in range(len(costs))]


class _Waiting:
    """Jobs of one call that no process has taken, the longest first."""

    def __init__(self, costs: Sequence[float], processes: int) -> None:
        self._costs, self._shares, self._left = costs, _SHARES * processes, float(sum(costs))
        self._queue, self._lock = deque(sorted(range(len(costs)), key=lambda i: -costs[i])), threading.Lock()

    def any(self) -> bool:
        return bool(self._queue)

    def share(self) -> list[int]:
        """Take jobs for a worker, from the long end."""
        with self._lock:
            limit, found = self._left / self._shares, list[int]()
            while self._queue and (not found or self._costs[self._queue[0]] <= limit):
                found.append(self._queue.popleft())
                limit -= self._costs[found[-1]]
            self._left -= sum(self._costs[one] for one in found)
            return found

    def one(self) -> int | None:
        """Take a job for this process, from the short end."""
        with self._lock:
            index = self._queue.pop() if self._queue else None
            self._left -= 0.0 if index is None else self._costs[index]
            return index

    def clear(self) -> None:
        with self._lock:
            self._queue.clear()


def _sound(answer: Any, share: Sequence[int]) -> Any:
    """Return a worker's results, or raise its error about one of them."""
    if not isinstance(answer, bytes):
        return answer
    error = from_bytes(answer)
    if isinstance(error, PartError) and error.at is not None:
        error.at = share[error.at]
    raise error
