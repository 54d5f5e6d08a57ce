"""Evaluations beside trainings: in a thread of their own, one call of the executor at a time, few under way."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final

from fedsim.learning.contracts import Evaluation
from fedsim.learning.executors.contracts import EvaluationJob, Executor

Found = Sequence[Evaluation]

_MOST_UNDER_WAY: Final = 2
"""Calls that may wait or run, each with its models in memory."""


class Running:
    """A call of the executor that runs beside the trainings.

    Parameters
    ----------
    future : of the call
    then : called once with what it gave, in the thread that first asks for it
    """

    def __init__(self, future: Future[Found], then: Callable[[Found], None]) -> None:
        self._future, self._then = future, then
        self._told = False

    def done(self) -> bool:
        """Return whether the results are there."""
        return self._future.done()

    def results(self) -> Found:
        """Return the results, waiting for them if need be; raise what the call has raised."""
        found = self._future.result()
        if not self._told:
            self._told = True
            self._then(found)
        return found

    def result(self) -> Evaluation:
        """Return the one result of a call with one job."""
        (found,) = self.results()
        return found


class Evaluator:
    """Gives jobs to the executor, whose calls to evaluate do not overlap one another.

    Parameters
    ----------
    executor : computes them; it may train meanwhile
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self._pool: ThreadPoolExecutor | None = None
        self._under_way: deque[Future[Found]] = deque()

    def start(self, jobs: Sequence[EvaluationJob], then: Callable[[Found], None]) -> Running:
        """Begin to evaluate jobs; a further call waits until few are under way."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="evaluation")
        self._wait(_MOST_UNDER_WAY - 1)
        future = self._pool.submit(self.executor.evaluate, jobs)
        self._under_way.append(future)
        return Running(future, then)

    def run(self, jobs: Sequence[EvaluationJob]) -> Found:
        """Return the evaluations of jobs."""
        self._wait(0)
        return self.executor.evaluate(jobs)

    def _wait(self, most: int) -> None:
        while len(self._under_way) > most:
            wait([self._under_way.popleft()])
