"""The contract check of tasks and of their metrics."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from fedsim.arrays import IntArray
from fedsim.learning import (
    MLP,
    Dataset,
    Evaluation,
    EvaluationJob,
    ExecutorChoice,
    LocalTraining,
    Task,
    TrainingJob,
    TrainingSetup,
)
from fedsim.learning.models.settings import ModelPart
from fedsim.testing.examination import Examination

_CUTS: Final = (1, 8)
_NEAR: Final = 1e-5


def check_task(task: Task, data: Dataset, *, model: ModelPart | None = None, seed: int = 0) -> None:
    """Check that a task keeps the contract of `fedsim.learning.Task`, and its metrics that of `Metric`.

    A small model is trained on a few samples and evaluated. The task must

    * state how many outputs it needs, at least 1, and the same each time,
    * give a finite loss for each sample that does not depend on the other samples of a batch,
    * have metrics whose sums of parts are those of the whole, of the width that they state,
    * give the same training from the same generator.

    Parameters
    ----------
    task : of your own
    data : with targets of the task, at least 20 training samples
    model : settings of a model that fits; a small perceptron by default
    seed : of the initial weights and of the training

    Raises
    ------
    ContractError
        Naming the task and the fault.

    Examples
    --------
    >>> from fedsim.learning import Classification, Digits
    >>> check_task(Classification(), Digits().load(None))
    """
    _Trial(task, data, model or MLP(hidden=(6,)), seed).check()


class _Trial(Examination):
    def __init__(self, task: Task, data: Dataset, model: ModelPart, seed: int) -> None:
        super().__init__(task)
        self._task, self._data, self._seed = task, data, seed
        local = LocalTraining(learning_rate=0.01, batch_size=7)
        self._setup = TrainingSetup(model, data, local, seed, task=task)
        self._rows = np.arange(min(20, len(data.train_y)))

    def check(self) -> None:
        outputs = self.ask("outputs", lambda: self._setup.outputs)
        self.law(outputs == self._task.outputs(self._data), "outputs differs when it is asked for again")
        from fedsim.learning.models.flat_module import build_flat  # imports torch

        base = build_flat(self._setup.model, self._data.shape, outputs, self._seed).layout.initial
        executor = ExecutorChoice("sequential").build(self._setup)

        def evaluated(parts: Sequence[IntArray]) -> Sequence[Evaluation]:
            return executor.evaluate([EvaluationJob(base, rows) for rows in parts])

        (whole,) = self.ask("losses", evaluated, [self._rows])
        self.law(np.isfinite(whole.loss), f"losses has the mean {whole.loss}")
        parts = self.ask("losses", evaluated, np.split(self._rows, _CUTS))
        samples = [one.samples for one in parts]
        together = float(np.average([one.loss for one in parts], weights=samples))
        near = np.isclose(together, whole.loss, rtol=_NEAR, atol=_NEAR)
        self.law(near, f"losses of samples depend on the others of a batch: {together} and {whole.loss}")
        sums = np.sum([one.sums for one in parts], axis=0)
        found = self._setup.scores.evaluation(np.concatenate([[together * sum(samples)], sums]), sum(samples))
        for name, value in whole.metrics.items():
            same = np.isclose(found.metrics[name], value, rtol=_NEAR, atol=_NEAR, equal_nan=True)
            self.law(same, f"metrics: {name} of sums over parts is {found.metrics[name]}, of all samples {value}")

        def trained() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
            job = TrainingJob(base, self._rows, 1.0, np.random.default_rng(self._seed))
            return next(iter(executor.train([job]))).difference

        once = self.ask("losses", trained)
        self.law(np.all(np.isfinite(once)), "losses has gradients that are not finite")
        self.same(self.ask("losses", trained), once, "losses gives another training when it is asked for again")
