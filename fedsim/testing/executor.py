"""The contract check of executors."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.learning import (
    MLP,
    Digits,
    Evaluation,
    EvaluationJob,
    ExecutorChoice,
    FedDyn,
    LocalTraining,
    MakeExecutor,
    Plain,
    TrainingJob,
    TrainingResult,
    TrainingSetup,
)
from fedsim.learning.executors.contracts import SEQUENTIAL, Precision
from fedsim.learning.models.layout import ModelLayout
from fedsim.learning.models.settings import ModelPart
from fedsim.learning.schedules import ConstantRate, Decay
from fedsim.testing.examination import Examination, locked

Asked = TypeVar("Asked")
Found = TypeVar("Found")

_LOCALS: Final = (
    LocalTraining(learning_rate=0.05, batch_size=7, epochs=2),
    LocalTraining(learning_rate=0.05, momentum=0.5, proximal=0.1, batch_size=7, keep_optimizer_state=True),
    LocalTraining(optimizer="adam", learning_rate=0.01, batch_size=7, max_batches=3, keep_optimizer_state=True),
    LocalTraining(
        learning_rate=0.05, batch_size=7, epochs=2, schedule=Decay(by="step"), clip_norm=1.0, weight_decay=0.01
    ),
)
_SIZES: Final = (20, 7, 33, 2)
"""Samples of the clients: some full batches and a short one, one batch, many, and a short one alone."""


def check_executor(
    executor: str | MakeExecutor,
    *,
    device: str = "cpu",
    model: ModelPart | None = None,
    precision: Precision = "float32",
    tolerance: float = 1e-3,
    seed: int = 0,
) -> None:
    """Check that an executor keeps the contract of `fedsim.learning.Executor`; return None if it does.

    It trains and evaluates a small model on parts of the digits with several ways of local training. It must

    * say its ``fingerprint``, a text, and its ``max_batch``, at least 1,
    * return one result for each job, in the jobs' order, and none for no jobs,
    * return differences as finite float32 arrays of the shape of the base, finite losses, and an optimiser state where
      one is kept and else none,
    * give a job the same result, bit by bit, whatever jobs are beside it, in whatever order, before or after
      evaluations, and in a second executor of the same setup,
    * do the share of the work that a job asks for, go on from the state that it brings, draw from its generator, and
      add its offset and the pull of the setup to gradients, with its learning rates,
    * leave the arrays of the jobs alone (they are read-only), and draw from no global generator,
    * agree with the sequential executor: bit by bit with its fingerprint, else within the tolerance.

    Parameters
    ----------
    executor : a kind, ``"module:Class"``, or a callable ``(setup, device) -> Executor``
    device : handed to it
    model : settings of the model; a small perceptron by default
    precision : handed to it; the sequential executor that it is compared with computes in float32
    tolerance : by how much differences of parameters, losses and accuracies may miss those of the sequential executor,
        relative to the largest difference, or absolute for losses and accuracies; used with other fingerprints only
    seed : of the initial weights and of the jobs' generators, >= 0

    Raises
    ------
    ContractError
        Naming the executor, the fault, and the local training and the job at which it shows.

    Examples
    --------
    >>> check_executor('sequential')
    """
    data = Digits(train_limit=200).load()
    for local in _LOCALS:
        algorithm = FedDyn(alpha=0.1) if local.clip_norm else Plain()
        setup = TrainingSetup(model or MLP(hidden=(6,)), data, local, seed, algorithm=algorithm)
        _Trial(ExecutorChoice(executor, device, precision), setup, tolerance).check()


class _Trial(Examination):
    def __init__(self, choice: ExecutorChoice, setup: TrainingSetup, tolerance: float) -> None:
        self._executor = choice.build(setup)
        local, kept = setup.local, "kept" if setup.local.keep_optimizer_state else "no"
        super().__init__(self._executor, f"{local.optimizer}, momentum {local.momentum}, {kept} state")
        self._choice, self._setup, self._tolerance = choice, setup, tolerance
        layout = self._layout()
        self._base, self._smallest_batch = layout.initial, layout.smallest_batch
        self._offset = locked(self._base[: layout.parameters] * np.float32(0.01))
        self._other = locked(self._base * np.float32(0.9))
        rows = locked(np.arange(13))
        pairs = ((self._base, None), (self._other, rows), (self._base, rows), (self._other, None))
        self._evaluations = [EvaluationJob(*pair) for pair in pairs]

    def check(self) -> None:
        first, scored = self._train(self._jobs()), self._evaluate(self._evaluations)
        self._train([]), self._evaluate([])
        further = self._train(self._jobs(first))
        self._compare(self._train(self._jobs()), first, "differ when they are asked for again")
        self._compare(self._train(self._jobs()[::-1])[::-1], first, "depend on the order of the jobs")
        fault = "depend on the other jobs"
        self._compare([self._train([job])[0] for job in self._jobs()], first, fault)
        self._compare_scores([self._evaluate([job])[0] for job in self._evaluations], scored, fault)
        twin, fault = _Trial(self._choice, self._setup, 0.0), "differ in a second executor of the same setup"
        self._compare(twin._train(self._jobs()), first, fault)
        self._compare_scores(twin._evaluate(self._evaluations), scored, fault)
        reference, fault = ExecutorChoice().build(self._setup), "are not those of the sequential executor"
        tolerance = self._tolerance
        if self._executor.fingerprint == SEQUENTIAL:
            fault, tolerance = fault + ", whose fingerprint it has", 0.0
        self._compare(first, list(reference.train(self._jobs())), fault, tolerance)
        self._compare(further, list(reference.train(self._jobs(first))), fault, tolerance)
        self._compare_scores(scored, reference.evaluate(self._evaluations), fault, tolerance)

    def _layout(self) -> ModelLayout:
        from fedsim.learning.models.flat_module import build_flat  # imports torch

        data = self._setup.data
        return build_flat(self._setup.model, data.shape, self._setup.outputs, self._setup.seed).layout

    def _jobs(self, after: Sequence[TrainingResult] = ()) -> list[TrainingJob]:
        """Return fresh jobs, each with a generator at the start of its stream; of all work ``after`` other results."""
        ends = np.cumsum((0, *_SIZES))
        jobs = [
            TrainingJob(
                base=self._base if i % 2 else self._other,
                rows=locked(np.arange(ends[i], ends[i + 1])),
                work=(1.0, 0.5, 1.7)[i % 3],
                rng=np.random.default_rng([self._setup.seed, i]),
                offset=self._offset if i % 2 and self._setup.algorithm.corrects else None,
                rates=self._rates(_SIZES[i], (1.0, 0.5, 1.7)[i % 3]),
            )
            for i in range(len(_SIZES))
        ]
        return (
            [
                job._replace(state=one.state, work=1.0, rates=self._rates(job.rows.size, 1.0))
                for job, one in zip(jobs, after, strict=True)
            ]
            if after
            else jobs
        )

    def _rates(self, samples: int, work: float) -> FloatArray | None:
        """Return the learning rates of a job, None for that of the settings."""
        local = self._setup.local
        if type(local.schedule) is ConstantRate:
            return None
        steps = int(local.batches(samples, work, self._smallest_batch))
        found: FloatArray = locked(local.learning_rate * local.schedule.factors(0, steps))
        return found

    def _train(self, jobs: Sequence[TrainingJob]) -> Sequence[TrainingResult]:
        results: list[TrainingResult] = []
        most = self._executor.max_batch
        for start in range(0, max(len(jobs), 1), most):
            results += self._asked(self._executor.train, jobs[start : start + most], "train")
        kept = self._setup.local.keep_optimizer_state
        for i, result in enumerate(results, start=1):
            job = f"(job {i})"
            numbers = (result.loss, result.loss_rms, *result.difference)
            self.law(np.all(np.isfinite(numbers)), f"train returned numbers that are not finite {job}")
            self.law(kept or not result.state, f"train returned an optimiser state though none is kept {job}")
        return results

    def _evaluate(self, jobs: Sequence[EvaluationJob]) -> Sequence[Evaluation]:
        return self._asked(self._executor.evaluate, jobs, "evaluate")

    def _asked(
        self, method: Callable[[Sequence[Asked]], Iterable[Found]], jobs: Sequence[Asked], name: str
    ) -> list[Found]:
        results = list(self.ask(name, method, jobs))
        self.law(len(results) == len(jobs), f"{name} returned {len(results)} results for {len(jobs)} jobs")
        return results

    def _compare(
        self, found: Sequence[TrainingResult], wanted: Sequence[TrainingResult], fault: str, tolerance: float = 0.0
    ) -> None:
        for i, (one, other) in enumerate(zip(found, wanted, strict=True), start=1):
            near = tolerance * max(float(np.abs(other.difference).max()), 1e-6)
            states = sorted(one.state) == sorted(other.state) and all(
                np.allclose(one.state[name], other.state[name], rtol=tolerance, atol=tolerance) for name in other.state
            )
            losses = np.allclose([one.loss, one.loss_rms], [other.loss, other.loss_rms], rtol=0, atol=tolerance)
            same = states and losses and np.abs(one.difference - other.difference).max() <= near
            self.law(same, f"train: results of train {fault} (job {i})")

    def _compare_scores(
        self, found: Sequence[Evaluation], wanted: Sequence[Evaluation], fault: str, tolerance: float = 0.0
    ) -> None:
        for one, other in zip(found, wanted, strict=True):
            same = np.allclose([one.accuracy, one.loss], [other.accuracy, other.loss], rtol=0, atol=tolerance)
            self.law(same, f"evaluate: results of evaluate {fault}: {one} and {other}")
