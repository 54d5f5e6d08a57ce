"""An executor that is built with its first job, so that a run that finds all results imports no torch."""

from collections.abc import Callable, Iterable, Sequence
from threading import Lock

from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.contracts import (
    EvaluationJob,
    Executor,
    TrainingJob,
    TrainingResult,
)


class DeferredExecutor:
    def __init__(self, fingerprint: str, max_batch: int, build: Callable[[], Executor]) -> None:
        self.fingerprint, self.max_batch, self._build = fingerprint, max_batch, build
        self._executor: Executor | None = None
        self._lock = Lock()  # the first evaluation may come from another thread than the first training

    def train(self, jobs: Sequence[TrainingJob]) -> Iterable[TrainingResult]:
        return self._built().train(jobs)

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> Sequence[Evaluation]:
        return self._built().evaluate(jobs)

    def _built(self) -> Executor:
        with self._lock:
            if self._executor is None:
                self._executor = self._build()
            return self._executor
