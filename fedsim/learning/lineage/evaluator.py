"""Evaluations beside trainings: in a thread of their own, one call of the executor at a time, few under way."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.contracts import EvaluationJob, Executor
from fedsim.learning.torch_modes import own_modes

Found = Sequence[Evaluation]

_MOST_UNDER_WAY: Final = 2
"""Calls that may wait or run, each with its models in memory."""


class Running:
    """A call of the executor that runs beside the trainings."""

    def __init__(self, future: Future[Found], then: Callable[[Found], None]) -> None:
        self._future, self._then = future, then
        self._told = False

    def done(self) -> bool:
        return self._future.done()

    def wait(self) -> None:
        """Wait for the end of the call; `results` raises its error."""
        if self._future.exception() is None:
            self.results()

    def results(self) -> Found:
        """Return the results, or raise the call's error; waits if need be."""
        found = self._future.result()
        if not self._told:
            self._told = True
            self._then(found)
        return found

    def result(self) -> Evaluation:
        (found,) = self.results()
        return found


class Later:
    """The evaluation of a model that is not computed yet, so that trainings of several models run together."""

    def __init__(self, begin: Callable[[], None]) -> None:
        self._begin = begin
        self.running: Running | None = None

    def done(self) -> bool:
        return self.running is not None and self.running.done()

    def result(self) -> Evaluation:
        """Return the evaluation; the model is computed first if need be."""
        if self.running is None:
            self._begin()
        if self.running is None:
            raise RuntimeError("an evaluation has not begun")
        return self.running.result()


class Evaluator:
    """Evaluates jobs by the executor, one call at a time."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self._pool: ThreadPoolExecutor | None = None
        self._under_way: deque[Running] = deque()

    def start(self, jobs: Sequence[EvaluationJob], then: Callable[[Found], None]) -> Running:
        """Begin to evaluate jobs; never waits, as the executor may train meanwhile and wait for its reader."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="evaluation")
        try:
            running = Running(self._pool.submit(self._evaluate, jobs), then)
        except BaseException:
            # A thread that Ctrl-C has found while it started is one that nothing else would end, and Python waits for.
            self._pool.shutdown(wait=False, cancel_futures=True)
            raise
        self._under_way.append(running)
        return running

    def run(self, jobs: Sequence[EvaluationJob]) -> Found:
        self.settle(0)
        return self._evaluate(jobs)

    @own_modes()
    def _evaluate(self, jobs: Sequence[EvaluationJob]) -> Found:
        return self.executor.evaluate(jobs)

    def settle(self, most: int = _MOST_UNDER_WAY) -> None:
        """Wait until at most a number of calls are under way."""
        while len(self._under_way) > most:
            self._under_way.popleft().wait()
