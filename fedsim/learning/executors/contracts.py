"""The contract of an executor: batches of jobs in, results out, in the jobs' order.

An executor knows neither rounds nor clients nor handles. It is chosen outside the scenario; a result does not depend on
it, up to the tolerance that its ``fingerprint`` stands for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, NamedTuple, Protocol

import numpy as np

from fedsim.answers import AnswerError, Contract, Free, Given, failed, in_words
from fedsim.arrays import FloatArray, IntArray, Vector
from fedsim.errors import FedsimError, PartError
from fedsim.learning.algorithms.contracts import LocalAlgorithm
from fedsim.learning.algorithms.plain import Plain
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.local_training import LocalTraining
from fedsim.learning.models.layout import ModelLayout
from fedsim.learning.models.settings import ModelPart
from fedsim.learning.tasks.contracts import TASK, Task
from fedsim.learning.tasks.of_labels import Classification
from fedsim.learning.tasks.scores import Scores

SEQUENTIAL: Final = "sequential"
"""The fingerprint of the executor that trains one client after the other, and of all that give the same bits."""

_RESULT_BYTES: Final = 1 << 30
"""Memory of the results of one call."""

Precision = Literal["float32", "bfloat16"]
"""Of the numbers inside layers; parameters, gradients, losses and optimiser states are always float32."""

OptimizerState = Mapping[str, Vector]
"""State of a client's optimiser between two trainings, under torch's names."""


class StateError(PartError):
    """Code of a user's changes what is no part of an update, or does not repeat."""


@dataclass(frozen=True)
class Expected:
    """What is known of a run's trainings before they begin; no result depends on it."""

    samples: IntArray
    cohort: int
    rounds: int


@dataclass(frozen=True)
class TrainingSetup:
    """What all jobs of one run have in common."""

    model: ModelPart
    data: Dataset
    local: LocalTraining
    seed: int
    precision: Precision = "float32"
    fast: bool = False
    """Whether bits may differ from run to run where that saves time."""
    expected: Expected | None = None
    algorithm: LocalAlgorithm = field(default_factory=Plain)
    task: Task = field(default_factory=Classification)
    amplified: bool = False
    """Whether what is done with updates turns a difference of rounding into a large one."""

    @cached_property
    def outputs(self) -> int:
        """How many numbers the model gives for a sample; `DataError` if the data are not those of the task."""
        return int(TASK.checked(self.task).outputs(self.data))

    @cached_property
    def scores(self) -> Scores:
        return Scores(self.task, self.outputs)

    @property
    def pull(self) -> float:
        """Strength of the pull towards the start: each gradient gains ``pull * (w - w_start)``."""
        return self.local.proximal + self.algorithm.pull


_NOTHING: Final[Mapping[str, Vector]] = {}


class TrainingJob(NamedTuple):
    base: Vector
    rows: IntArray
    work: float
    rng: np.random.Generator
    state: OptimizerState = _NOTHING
    offset: Vector | None = None
    anchors: Mapping[str, Vector] = _NOTHING
    rates: FloatArray | None = None


class TrainingResult(NamedTuple):
    difference: Vector
    loss: float
    loss_rms: float
    state: OptimizerState

    @property
    def nbytes(self) -> int:
        return self.difference.nbytes + sum(values.nbytes for values in self.state.values())


@dataclass(frozen=True)
class EvaluationJob:
    """A model and the samples that it is evaluated on: the test set without ``rows``, else those of `Dataset.taken`."""

    model: Vector
    rows: IntArray | None = None
    parts: IntArray | None = None


def check_cpu(executor: str, device: str) -> None:
    if device != "cpu":
        raise FedsimError(f"device: {device!r} is not allowed with the executor {executor!r}; allowed: 'cpu'")


def check_mapped(executor: str, algorithm: LocalAlgorithm, task: Task) -> None:
    """Refuse what an executor cannot map over clients: own losses of algorithms, and made batches."""
    allowed = "allowed: the executors 'sequential' and 'processes'"
    if algorithm.has_loss:
        raise FedsimError(
            f"learning.algorithm: {type(algorithm).__name__} has a loss of its own, which the executor {executor!r} "
            f"does not compute; {allowed}"
        )
    if TASK.checked(task).makes_batches:
        raise FedsimError(
            f"learning.task: {type(task).__name__} makes batches of its own (augmentation), which the executor "
            f"{executor!r} does not do; {allowed}"
        )


def fingerprint_with(setup: TrainingSetup, fingerprint: str) -> str:
    """Return a fingerprint with what else bits depend on."""
    words = [setup.precision] * (setup.precision != "float32") + ["fast"] * setup.fast
    return "-".join([fingerprint, *words])


def most_trainings(setup: TrainingSetup, layout: ModelLayout, most: int = 256) -> int:
    """Return how many trainings of one call have results of 1 GiB, at least 32 and at most as many as said."""
    arrays = 3 if setup.local.keep_optimizer_state else 1
    return min(most, max(32, _RESULT_BYTES // (arrays * layout.initial.nbytes)))


class Executor(Protocol):
    """Computes jobs for one `TrainingSetup`; made by a call ``(setup, device)``.

    Examples
    --------
    >>> from fedsim.learning import MLP, Digits, ExecutorChoice
    >>> setup = TrainingSetup(MLP(hidden=()), Digits(train_limit=40).load(), LocalTraining(), seed=0)
    >>> executor = ExecutorChoice("sequential").build(setup)
    >>> executor.fingerprint, executor.max_batch
    ('sequential', 256)
    """

    @property
    def fingerprint(self) -> str:
        """What the results are equal to, bit by bit: `SEQUENTIAL`, or a name of its own with what the bits depend on.

        A store keeps results of different fingerprints apart.
        """

    @property
    def max_batch(self) -> int:
        """Most trainings that one call is given, at least 1."""

    def train(self, jobs: Sequence[TrainingJob]) -> Iterable[TrainingResult]:
        """Return what each job learns, in their order; a result depends on its own job alone.

        It may train while it is read, so that no more results than needed are in memory. It is read to its end before
        the next call.

        Parameters
        ----------
        jobs : at most ``max_batch`` of them
        """

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> Sequence[Evaluation]:
        """Return loss and metrics of each job, in their order; a result depends on its own job alone.

        `TrainingSetup.scores` makes them of sums over samples.

        It may be called from another thread while trainings run.

        Parameters
        ----------
        jobs : any number of them
        """


def _trained(answer: object, given: Given) -> Iterator[TrainingResult]:
    if not isinstance(answer, Iterable):
        raise AnswerError(in_words(answer), "results of trainings")
    return _checked_results(answer, given["jobs"], given["executor"])


def _checked_results(
    results: Iterable[TrainingResult], jobs: Sequence[TrainingJob], executor: str
) -> Iterator[TrainingResult]:
    """Yield one result for each job, in their order, each checked as it is read."""
    read = iter(results)
    for count, job in enumerate([*jobs, None]):
        try:
            result = next(read)
        except StopIteration:
            if job is None:
                return
            fault = f"{executor}.train returned {count} results"
            raise PartError(fault, f"allowed: one for each of {len(jobs)} jobs") from None
        except (FedsimError, KeyboardInterrupt):
            raise
        except BaseException as failure:
            raise failed(executor, "train", failure) from failure
        if job is None:
            raise PartError(f"{executor}.train returned more than {count} results", "allowed: one for each job")
        if type(result) is not TrainingResult:
            raise PartError(f"{executor}.train returned {in_words(result)}", "allowed: TrainingResult")
        found: object = result.difference
        if not isinstance(found, np.ndarray) or found.dtype != np.float32 or found.shape != job.base.shape:
            raise PartError(
                f"{executor}.train returned a difference of {in_words(found)}",
                f"allowed: float32 of shape {job.base.shape}",
            )
        yield result


EXECUTOR: Final = Contract("executor", Executor, {"train": _trained, "evaluate": Free()})
