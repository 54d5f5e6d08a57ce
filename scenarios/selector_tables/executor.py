"""One executor for all runs of a process: its steps are recorded once."""

from collections.abc import Iterable, Sequence
from typing import Final

from fedsim.learning import Executor, TrainingSetup
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.contracts import EvaluationJob, TrainingJob, TrainingResult

_EXECUTORS: Final[dict[str, Executor]] = {}


class Shared:
    """The stacked executor of this process for a model, local training and data set.

    Initial weights come with each job, so runs of several seeds can share it.
    """

    def __init__(self, setup: TrainingSetup, device: str) -> None:
        from fedsim.learning.executors.stacked.executor import StackedExecutor  # torch, in the workers alone

        key = f"{setup.model!r} {setup.local!r} {setup.precision} {device} {setup.data.digest}"
        if key not in _EXECUTORS:
            _EXECUTORS[key] = StackedExecutor(setup, device)
        self._own = _EXECUTORS[key]
        self.fingerprint, self.max_batch = self._own.fingerprint, self._own.max_batch

    def train(self, jobs: Sequence[TrainingJob]) -> Iterable[TrainingResult]:
        return self._own.train(jobs)

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> Sequence[Evaluation]:
        return self._own.evaluate(jobs)
