"""Supervised federated learning by handles: nothing is trained before its numbers are needed."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from fedsim.errors import ScenarioError
from fedsim.learning.aggregation import Aggregator
from fedsim.learning.datasets import Dataset
from fedsim.learning.lineage import (
    ModelHandle,
    State,
    StateHandle,
    Training,
    TrainingResult,
    TrainingTask,
    UpdateHandle,
    Vector,
    description,
    digest_of,
)
from fedsim.learning.local import LocalTraining
from fedsim.learning.models import ModelPart
from fedsim.learning.protocol import Evaluation, Model, Release, Update
from fedsim.learning.store import MemoryStore, Store
from fedsim.streams import Streams
from fedsim.units import BITS_PER_FLOAT32


class Executor(Protocol):
    """What computes batches of trainings; every executor gives the same results."""

    @property
    def initial(self) -> Vector:
        """The model of version 0."""
        ...

    @property
    def exempt_mask(self) -> NDArray[np.bool_]:
        """Coordinates that a privacy mechanism may let pass in clear."""
        ...

    @property
    def smallest_batch(self) -> int:
        """Fewest samples a batch must have."""
        ...

    def train(self, tasks: Sequence[TrainingTask]) -> list[TrainingResult]:
        """Return what each client learns."""
        ...

    def evaluate(self, vector: Vector) -> Evaluation:
        """Return how good a model is on the test set."""
        ...


class Settings(Protocol):
    """The part of the scenario's learning table that is used after building."""

    @property
    def model(self) -> ModelPart:
        """Settings of the model."""
        ...

    @property
    def local(self) -> LocalTraining:
        """Local training."""
        ...

    @property
    def server(self) -> Aggregator:
        """Aggregation rule."""
        ...

    @property
    def model_bits(self) -> float | None:
        """Size of the model on the air, if it is set."""
        ...

    @property
    def flops_per_sample(self) -> float | None:
        """Operations to train on one sample, if they are set."""
        ...


class SupervisedLearner:
    """Supervised federated learning with one global model.

    Streams: ``("model",)`` initial weights, ``("split",)``, ``("training", client, version)`` batch order and
    dropout, ``("privacy-noise", client, index)``.

    Attributes
    ----------
    model_bits : size of the model on the air
    samples : training samples of every client, shape (K,)
    trainings : how many trainings this learner has computed; those found in the store do not count
    store : where results of training are kept
    """

    def __init__(
        self,
        *,
        data: Dataset,
        rows: Sequence[NDArray[np.int64]],
        executor: Executor,
        settings: Settings,
        seed: int,
        streams: Streams,
        mechanism: Any = None,
        store: Store | None = None,
    ) -> None:
        self.samples = np.array([part.size for part in rows], dtype=np.int64)
        self.trainings = 0
        self.store: Store = MemoryStore() if store is None else store
        self._rows, self._executor, self._streams = rows, executor, streams
        self._model, self._shape, self._classes = settings.model, data.shape, data.classes
        self._flops_per_sample = settings.flops_per_sample
        self._local, self._server, self._mechanism = settings.local, settings.server, mechanism
        self.model_bits: float = settings.model_bits or float(BITS_PER_FLOAT32 * executor.initial.size)
        self._states: dict[int, StateHandle] = {}
        self._refuse_clients_without_a_batch()
        self._task = digest_of(data.digest, description(settings.model), description(settings.local))
        self._shards = [digest_of(part.tobytes()) for part in rows]
        start = digest_of("initial", description(settings.model), str(data.shape), data.classes, seed)
        self._initial = ModelHandle(start, 0, vector=executor.initial)

    @cached_property
    def flops_per_sample(self) -> float:
        """Floating-point operations to train on one sample, counted when they are first asked for."""
        from fedsim.learning.flops import training_flops

        return self._flops_per_sample or training_flops(self._model, self._shape, self._classes)

    def work_samples(self, client: NDArray[np.int64], work: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return how many samples each client passes through its model in one local training."""
        share = 1.0 if work is None else work
        return self._local.work_samples(self.samples[client], share, self._executor.smallest_batch)

    def initial(self) -> Model:
        """Return the model of version 0."""
        return self._initial

    def update(self, model: Model, client: int, release: Release | None = None, work: float = 1.0) -> Update:
        """Return what a client would send after training from a model; computes nothing.

        With ``keep_optimizer_state`` the training goes on from the state that the client's last aggregated
        update left, as of this call.

        Raises
        ------
        ScenarioError
            If there is a release but no mechanism.
        """
        if release is not None and self._mechanism is None:
            raise ScenarioError("privacy: an update shall be released, but the learner has no mechanism")
        training = self._training(cast(ModelHandle, model), client, work)
        digest = training.digest
        if release is not None:
            noise = self._streams.digest("privacy-noise", client, release.index)
            digest = digest_of("release", digest, description(self._mechanism), release.epsilon, noise)
        return UpdateHandle(digest, client, training, release)

    def aggregate(self, model: Model, updates: Sequence[Update], weights: NDArray[np.float64]) -> Model:
        """Return the next model from delivered updates with their weights; computes nothing.

        Weights are used as they are given, in the order of the updates; for an average they sum to one.
        """
        delivered = [cast(UpdateHandle, update) for update in updates]
        chosen = np.array(weights, dtype=np.float64)
        if chosen.shape != (len(delivered),) or not np.all(np.isfinite(chosen)):
            raise ValueError(f"weights: {weights!r}; one finite number for each of {len(delivered)} updates")
        if self._local.keep_optimizer_state:
            self._states.update({update.client: update.training.state for update in delivered})
        lineage = [model.digest, *(update.digest for update in delivered)]
        digest = digest_of("aggregate", description(self._server), *lineage, chosen.tobytes())
        return ModelHandle(digest, model.version + 1, cast(ModelHandle, model), delivered, chosen)

    def losses(self, updates: Sequence[Update]) -> NDArray[np.float64]:
        """Return the mean training loss behind each update, training where it has not been done."""
        trainings = [cast(UpdateHandle, update).training for update in updates]
        for training in trainings:
            self._settle(training)
        return np.array([_result(training).loss for training in trainings], dtype=np.float64)

    def evaluate(self, model: Model) -> Evaluation:
        """Return how good a model is on the whole test set, training whatever it descends from."""
        handle = cast(ModelHandle, model)
        if handle.evaluation is None:
            handle.evaluation = self._executor.evaluate(self.vector(handle))
        return handle.evaluation

    def vector(self, model: Model) -> Vector:
        """Return the numbers of a model, parameters first and then buffers, training what is needed."""
        handle = cast(ModelHandle, model)
        self._settle(handle)
        return handle.vector

    def _training(self, base: ModelHandle, client: int, work: float) -> Training:
        previous = self._states.get(client)
        stream = self._streams.digest("training", client, base.version)
        before = None if previous is None else previous.digest
        digest = digest_of("training", self._task, base.digest, self._shards[client], stream, work, before)

        def make_task(vector: Vector, state: State) -> TrainingTask:
            rng = self._streams.generator("training", client, base_version)
            return TrainingTask(vector, self._rows[client], work, rng, state)

        base_version = base.version
        return Training(digest, base, previous, make_task)

    def _settle(self, wanted: ModelHandle | Training) -> None:
        """Settle a node after its ancestors, oldest first; trainings that are ready go as one batch."""
        stack = [wanted]
        while stack:
            node = stack[-1]
            waiting = [parent for parent in node.parents() if not parent.settled]
            ready = [
                parent
                for parent in waiting
                if isinstance(parent, Training) and all(older.settled for older in parent.parents())
            ]
            if node.settled:
                stack.pop()
            elif ready:
                self._run(ready)
            elif waiting:
                stack.append(waiting[0])
            elif isinstance(node, Training):
                self._run([node])
            else:
                node.settle(self._combine)

    def _run(self, trainings: Sequence[Training]) -> None:
        results = {training.digest: self.store.get(training.digest) for training in trainings}
        new = {training.digest: training for training in trainings if results[training.digest] is None}
        computed = self._executor.train([training.task() for training in new.values()])
        for digest, result in zip(new, computed, strict=True):
            results[digest] = result
            self.store.put(digest, result)
        self.trainings += len(new)
        for training in trainings:
            found = results[training.digest]
            if found is not None:
                training.settle(found)

    def _combine(self, base: Vector, updates: Sequence[UpdateHandle], weights: NDArray[np.float64]) -> Vector:
        return self._server.aggregate(base, [self._sent(update) for update in updates], weights)

    def _sent(self, update: UpdateHandle) -> Vector:
        """Return what the server receives: the difference, or its private release."""
        difference, release = _result(update.training).difference, update.release
        if release is None:
            return difference
        rng = self._streams.generator("privacy-noise", update.client, release.index)
        sent = self._mechanism.release(difference, release.epsilon, self._executor.exempt_mask, rng)
        return np.asarray(sent, dtype=np.float32)

    def _refuse_clients_without_a_batch(self) -> None:
        least = self._executor.smallest_batch
        if self._local.batch_size < least:
            raise ScenarioError(
                f"learning.local.batch_size: {self._local.batch_size} is not allowed; a model with batch "
                f"normalisation needs batches of at least {least} samples"
            )
        idle = np.flatnonzero(self._local.batches_per_epoch(self.samples, least) == 0)
        if idle.size:
            raise ScenarioError(
                f"learning.split: client {idle[0]} has {self.samples[idle[0]]} sample(s), too few for one batch: "
                f"this model needs at least {least}; allowed: a split that gives every client so many"
            )


def _result(training: Training) -> TrainingResult:
    if training.result is None:
        raise RuntimeError(f"training {training.digest} has not run")
    return training.result
