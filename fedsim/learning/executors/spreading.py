"""Jobs of one call in shares for workers; these become smaller the less is left, so that all end at about one time."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from typing import Any, Final

import numpy as np

from fedsim.arrays import FloatArray, Vector
from fedsim.errors import PartError
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.chunks import Chunk, evaluated
from fedsim.learning.executors.contracts import EvaluationJob, TrainingJob, TrainingResult, TrainingSetup
from fedsim.learning.executors.portable import from_bytes

_SHARES: Final = 3
"""Part of a worker's share of what is left that it takes at once."""
NO_MODEL: Final = np.empty(0, dtype=np.float32)
"""In place of a model that is sent once for all jobs."""


class SpreadingExecutor(ABC):
    """Trains and evaluates by workers: threads, processes or actors.

    Parameters
    ----------
    setup : TrainingSetup
    device : where the workers compute, in torch's words
    """

    fingerprint: str
    max_batch: int

    def __init__(self, setup: TrainingSetup) -> None:
        self._run = setup

    def train(self, jobs: Sequence[TrainingJob]) -> Iterable[TrainingResult]:
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
        return self._computed(chunks, [float(one.stop - one.start) for one in chunks])

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
    takers: int,
    submit: Callable[[Sequence[int]], Future[Any]],
    here: Callable[[int], Any] | None = None,
    end: Callable[[], None] = lambda: None,
) -> list[Any]:
    """Return the results of all jobs, which takers get in shares, the longest jobs first.

    This process is one of them if it computes jobs ``here``: from the short end those that no worker has begun. ``end``
    is called at an interrupt.
    """
    shares, futures, found = list(_shares(costs, takers)), list[Future[Any]](), dict[int, Any]()
    try:
        futures += map(submit, shares)
        for share, future in zip(reversed(shares), reversed(futures), strict=True):
            if here is not None and future.cancel():
                found.update((index, here(index)) for index in share)
        for share, future in zip(shares, futures, strict=True):
            if share[0] not in found:
                found.update(zip(share, _sound(future.result(), share), strict=True))
    except BaseException as error:
        running = [future for future in futures if not future.cancel()]  # nothing more begins
        if isinstance(error, Exception):
            wait(running)
        else:
            end()
        raise
    return [found[i] for i in range(len(costs))]


def _shares(costs: Sequence[float], takers: int) -> Iterator[list[int]]:
    left, queue = float(sum(costs)), deque(sorted(range(len(costs)), key=lambda i: -costs[i]))
    while queue:
        limit, share = left / (_SHARES * takers), list[int]()
        while queue and (not share or costs[queue[0]] <= limit):
            share.append(queue.popleft())
            limit -= costs[share[-1]]
        left -= sum(costs[one] for one in share)
        yield share


def _sound(answer: Any, share: Sequence[int]) -> Any:
    """Return a worker's results, or raise its error about one of them."""
    if not isinstance(answer, bytes):
        return answer
    error = from_bytes(answer)
    if isinstance(error, PartError) and error.at is not None:
        error.at = share[error.at]
    raise error
