"""The learning table of a scenario, and the kinds of learners."""

from typing import Annotated, ClassVar, Final, Protocol, Self

import numpy as np
from pydantic import model_validator

from fedsim.answers import Contract, Free
from fedsim.capabilities import FLOPS, MODEL_BITS, SAMPLES, Capable
from fedsim.errors import DataError, ScenarioError
from fedsim.identity import copied
from fedsim.learning.aggregation.contracts import AGGREGATIONS, Aggregator, Mean
from fedsim.learning.algorithms.contracts import LOCAL_ALGORITHMS, LocalAlgorithm
from fedsim.learning.algorithms.plain import Plain
from fedsim.learning.compression.compressors import COMPRESSORS, Compressor, NoCompression
from fedsim.learning.contracts import Learner
from fedsim.learning.data.datasets import DATASET_PART, DATASETS, Dataset, DatasetPart
from fedsim.learning.data.division import Division, shared_labels
from fedsim.learning.data.handed import HandedData
from fedsim.learning.data.images.digits import Digits
from fedsim.learning.data.partitions.contracts import PARTITIONS, Partition
from fedsim.learning.data.partitions.local_tests import Divided
from fedsim.learning.data.partitions.natural import NaturalPartition
from fedsim.learning.data.partitions.sizes import EqualPartition
from fedsim.learning.generators import own_generators
from fedsim.learning.local_training import LocalTraining
from fedsim.learning.models.own.handed import HandedModel
from fedsim.learning.models.settings import MLP, MODELS, ModelPart
from fedsim.learning.server_optimizers.averaging import FedAvg
from fedsim.learning.server_optimizers.contracts import SERVER_OPTIMIZERS, ServerOptimizer
from fedsim.learning.tasks.contracts import TASK, TASKS, Task
from fedsim.learning.tasks.ignored import IgnoringTask, counted
from fedsim.learning.tasks.of_labels import Classification
from fedsim.learning.torch_modes import own_modes
from fedsim.learning.training_run import TrainingRun
from fedsim.registry import Component, Registry, Slot
from fedsim.units import Bits, FlopsPerSample, Positive


def notes_of(data: Dataset, task: Task) -> tuple[str, ...]:
    """Return sentences on a data set: its division, what fills samples up, what is ignored, labels without samples."""
    told = (*data.notes, _labels(data), _ignored(data, task))
    return tuple(f"learning.data: {note}" for note in told if note)


def _labels(data: Dataset) -> str:
    """Return how many labels training and test set share where a label of a test sample is in no training sample."""
    if data.labels is None or data.classes is None or data.notes or np.isin(data.test_y, data.labels).all():
        return ""
    return shared_labels(data.labels, data.test_y, data.classes)


def _ignored(data: Dataset, task: Task) -> str:
    if not isinstance(task, IgnoringTask) or not task.ignore:
        return ""
    parts = []
    for where, targets in (("training", data.train_y), ("test", data.test_y)):
        left_out = targets.size - np.count_nonzero(counted(targets, task.ignore))
        if left_out == targets.size:
            raise DataError(f"learning.task.ignore: {list(task.ignore)} leaves no {where} sample; allowed: fewer")
        parts.append(f"{left_out:,} of {targets.size:,}")
    values = ", ".join(map(str, task.ignore))
    return f"targets of {values} count for nothing (learning.task.ignore): {parts[0]} in training, {parts[1]} in tests"


class LearnerSettings(Capable, Protocol):
    """What a scenario asks of its learning table.

    Attributes
    ----------
    provides : of ``"model-bits"``, ``"samples"`` and ``"flops"`` what the learner of a run knows

    Examples
    --------
    >>> from fedsim.learning import NoLearning
    >>> from fedsim.learning import TrainingRun
    >>> from fedsim.streams import Streams
    >>> settings = NoLearning(samples_per_client=50)
    >>> settings.build(TrainingRun(3, Streams(0))).initial().version, sorted(settings.provides)
    (0, ['samples'])
    """

    def build(self, run: TrainingRun) -> Learner:
        """Return a fresh learner.

        Parameters
        ----------
        run : what a part may read of its run, and what runs choose outside of scenarios
        """


LEARNER_SETTINGS: Final = Contract("learner", LearnerSettings, {"build": Free()})


class Supervised(Component):
    """Learn from samples: a task, a data set divided among clients, a model, local training, a server optimiser.

    Attributes
    ----------
    task : entry of `TASKS`
        What is learned about a sample: loss and metrics.
    test : Division, optional
        Rows for testing of ``data`` that come without a division of their own, such as a pair of arrays; by default a
        fifth of them, drawn by the seed, of each label in proportion.
    data, split, model, server : entries of `DATASETS`, `PARTITIONS`, `MODELS` and `SERVER_OPTIMIZERS`
    aggregation : entry of `AGGREGATIONS`
        How the updates of an aggregation become one, with which the server optimiser steps.
    allow_empty : bool
        Whether a client may have no samples, or too few for one batch. It is never a candidate then, has no weight and
        does no work; without it such a split is refused.
    local : LocalTraining
    algorithm : entry of `LOCAL_ALGORITHMS`
        What clients do in their training beside plain steps.
    compression : entry of `COMPRESSORS`
        What makes updates smaller before they are sent; models are sent down as they are.
    model_bits : float > 0, optional
        Bits of the model when it is sent, to stand for a bigger network; otherwise 32 bits for every parameter and
        buffer. An update has as many without compression, and with it the same share of them as of the network learned.
    flops_per_sample : float > 0, optional
        Floating-point operations to train on one sample, to stand for a bigger network; otherwise counted on the
        model, see `fedsim.learning.models.flops`.

    Examples
    --------
    >>> from fedsim.learning import TrainingRun
    >>> from fedsim.streams import Streams
    >>> settings = Supervised(data={"kind": "digits", "train_limit": 100}, model={"kind": "mlp", "hidden": (4,)})
    >>> learner = settings.build(TrainingRun(4, Streams(0)))
    >>> learner.samples.tolist(), learner.model_bits  # 32 (64 * 4 + 4 + 4 * 10 + 10)
    ([25, 25, 25, 25], 9920.0)
    """

    provides: ClassVar[frozenset[str]] = frozenset({FLOPS, MODEL_BITS, SAMPLES})

    task: Annotated[Task, Slot(TASKS)] = Classification()
    data: Annotated[DatasetPart, Slot(DATASETS)] = Digits()
    test: Division | None = None
    split: Annotated[Partition, Slot(PARTITIONS)] = EqualPartition()
    model: Annotated[ModelPart, Slot(MODELS)] = MLP()
    local: LocalTraining = LocalTraining()
    algorithm: Annotated[LocalAlgorithm, Slot(LOCAL_ALGORITHMS)] = Plain()
    server: Annotated[ServerOptimizer, Slot(SERVER_OPTIMIZERS)] = FedAvg()
    aggregation: Annotated[Aggregator, Slot(AGGREGATIONS)] = Mean()
    allow_empty: bool = False
    compression: Annotated[Compressor, Slot(COMPRESSORS)] = NoCompression()
    model_bits: Positive[Bits] | None = None
    flops_per_sample: Positive[FlopsPerSample] | None = None

    @model_validator(mode="after")
    def _has_rows_to_divide(self) -> Self:
        if self.test is not None and not isinstance(self.data, HandedData):
            raise ValueError(
                f"test: is not allowed with data = {DATASETS.kind_of(self.data)!r}, which has a division of its own; "
                "allowed: no learning.test"
            )
        return self

    @model_validator(mode="after")
    def _fits_the_algorithm(self) -> Self:
        kind, algorithm = LOCAL_ALGORITHMS.kind_of(self.algorithm), self.algorithm
        if (algorithm.server_keeps or algorithm.changes_messages) and not self.compression.lossless:
            found = COMPRESSORS.kind_of(self.compression)
            raise ValueError(
                f"compression = {found!r} is not allowed with algorithm = {kind!r}, whose messages are no updates of "
                "the whole model; allowed: 'none'"
            )
        if algorithm.reweighs and self.local.optimizer != "sgd":
            raise ValueError(
                f"local.optimizer = {self.local.optimizer!r} is not allowed with algorithm = {kind!r}, whose weights "
                "are those of steps of SGD; allowed: 'sgd'"
            )
        if (
            algorithm.server_keeps or algorithm.reweighs or algorithm.changes_messages
        ) and not self.aggregation.adds_up:
            found = AGGREGATIONS.kind_of(self.aggregation)
            raise ValueError(
                f"aggregation = {found!r} is not allowed with algorithm = {kind!r}, whose server adds updates up; "
                "allowed: 'mean'"
            )
        if len(algorithm.ratios) > 1 and self.local.keep_optimizer_state:
            raise ValueError(
                f"local.keep_optimizer_state = True is not allowed with algorithm = {kind!r}, since a client's part of "
                "the model changes; allowed: false"
            )
        return self

    @own_modes()
    def build(self, run: TrainingRun) -> Learner:
        """Return a fresh learner; loads the data, and imports torch unless the store knows the model."""
        from fedsim.learning.lineage.behaviour import is_own

        rules = {name: getattr(self, name) for name in ("task", "algorithm", "server", "aggregation", "compression")}
        own = {name: copied(rule) for name, rule in rules.items() if is_own(rule)}  # equal runs begin alike
        if is_own(self.local):
            own["local"] = self.local.model_copy(update={"schedule": copied(self.local.schedule)})
        return (self.model_copy(update=own) if own else self)._built(run)

    def _built(self, run: TrainingRun) -> Learner:
        from concurrent.futures import ThreadPoolExecutor

        from fedsim.learning.blueprint import prepare
        from fedsim.learning.executors.choice import ExecutorChoice
        from fedsim.learning.executors.contracts import TrainingSetup
        from fedsim.learning.store.choice import open_store
        from fedsim.learning.supervised import SupervisedLearner

        clients, streams = run.clients, run.streams
        kept = open_store(run.store)  # before the data: a folder that cannot be used is refused at once
        if isinstance(self.data, HandedData):
            data = self.data.load(run.data_dir, self.test, streams.generator("test-rows"))
        else:
            with own_generators(0):
                data = DATASET_PART.checked(self.data).load(run.data_dir)
        if isinstance(self.model, HandedModel):
            data = data.filled_with_zeros()
        divided, notes = Divided(self.split, data, clients, streams), notes_of(data, self.task)
        if isinstance(self.task, IgnoringTask):
            data = divided.restricted(self.task.samples)
        rows = divided.rows
        users = data.train_users
        if isinstance(self.split, NaturalPartition) and users is not None and not self.allow_empty:
            _check_users(self.split, self.split.count(users), clients)
        seed = int(streams.generator("model").integers(2**63, dtype=np.int64))
        task = TASK.checked(self.task).bound(data)
        amplified = not (self.compression.lossless and self.aggregation.adds_up)
        setup = TrainingSetup(
            self.model, data, self.local, seed, algorithm=self.algorithm, task=task, amplified=amplified
        )
        samples = np.array([part.size for part in rows])
        with ThreadPoolExecutor(1) as beside:
            beside.submit(lambda: data.digest)  # which large sets take a while for
            blueprint, computing = prepare(setup, run.executor or ExecutorChoice(), samples, kept)
        return SupervisedLearner(self, run, setup, blueprint, computing, rows, lambda: divided.tests, notes)


LEARNERS: Final = Registry(
    "learner",
    "fedsim.learners",
    ("build",),
    {"supervised": "fedsim.learning.settings:Supervised", "none": "fedsim.learning.timing_only:NoLearning"},
    default="supervised",
    attributes=("provides",),
)


def _check_users(split: NaturalPartition, users: int, clients: int) -> None:
    if users < clients:
        fewer = f"crowd.clients of {users} at most" if users else "a smaller min_samples"
        enough = f" with min_samples = {split.min_samples} training samples or more" if split.min_samples > 1 else ""
        raise ScenarioError(
            f"learning.split: 'natural' gives each client a user, and the data set has {users} users{enough} for "
            f"{clients} clients; allowed: {fewer}, or learning.allow_empty = true"
        )
