"""Where handles become numbers: trainings and probes go to the executor in batches, and are kept in the store.

Streams: ``("training", client, version)`` batch order and dropout, ``("probe", client, round)`` mini-batch of a
probe, ``("privacy-noise", client, index)``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import Vector
from fedsim.learning.contracts import Evaluation
from fedsim.learning.executors.contracts import Asked, Executor, Found
from fedsim.learning.lineage.handles import (
    ModelHandle,
    State,
    Training,
    TrainingResult,
    TrainingTask,
    UpdateHandle,
    digest_of,
)
from fedsim.learning.lineage.order import Node, settle
from fedsim.learning.lineage.store import Store
from fedsim.streams import Streams


class Computation:
    """The numbers behind the handles of one learner.

    Parameters
    ----------
    executor : Executor
    rows : every client's samples in the training set
    data_digest : digest of the data set
    streams : the luck of the run
    mechanism : what makes updates private, or None
    store : Store

    Attributes
    ----------
    trainings : how many trainings have been computed; those found in the store do not count
    shards : digest of every client's samples
    """

    def __init__(
        self,
        executor: Executor,
        rows: Sequence[NDArray[np.int64]],
        data_digest: str,
        streams: Streams,
        mechanism: Any,
        store: Store,
    ) -> None:
        self.executor, self.store, self.trainings = executor, store, 0
        self.shards = [digest_of(part.tobytes()) for part in rows]
        self._rows, self._data_digest, self._streams, self._mechanism = rows, data_digest, streams, mechanism

    def settle(self, wanted: Sequence[Node]) -> None:
        """Work out handles with all that they descend from."""
        settle(wanted, self._run)

    def vector(self, model: ModelHandle) -> Vector:
        """Return the numbers of a model, parameters first and then buffers."""
        self.settle([model])
        return model.vector

    def evaluate(self, model: ModelHandle) -> Evaluation:
        """Return how good a model is on the test set."""
        if model.evaluation is None:
            model.evaluation = self.executor.evaluate(self.vector(model))
        return model.evaluation

    def task(self, client: int, keys: tuple[int, ...], work: float, base: Vector, state: State) -> TrainingTask:
        """Return what an executor must do for one client's training with the luck of these keys."""
        rng = self._streams.generator("training", *keys)
        return TrainingTask(base, self._rows[client], work, rng, state)

    def sent(self, update: UpdateHandle) -> Vector:
        """Return what the server receives, the training having run: the difference, or its private release."""
        difference, release = result_of(update).difference, update.release
        if release is None:
            return difference
        rng = self._streams.generator("privacy-noise", update.client, release.index)
        sent = self._mechanism.release(difference, release.epsilon, self.executor.exempt_mask, rng)
        return np.asarray(sent, dtype=np.float32)

    def scores(
        self, digest: str, vector: Vector, client: Sequence[int], samples: int | None = None, round_: int = 0
    ) -> list[Evaluation]:
        """Return how good a model is on each client's data, or on a mini-batch of it.

        Parameters
        ----------
        digest, vector : of the model, global or a client's own
        client : ids
        samples : size of the mini-batch, the first of a permutation drawn for (client, round); None, or as many
            as the client has, for all
        round_ : used with ``samples`` only
        """
        most = [samples if samples is not None and samples < self._rows[one].size else None for one in client]
        digests = [self._score_digest(digest, one, count, round_) for one, count in zip(client, most, strict=True)]

        def compute(asked: list[tuple[int, int | None]]) -> list[Evaluation]:
            return self.executor.score(vector, [self._part(one, count, round_) for one, count in asked])

        known = self._known(dict(zip(digests, zip(client, most, strict=True), strict=True)), compute, Evaluation)
        return [known[one] for one in digests]

    def _score_digest(self, digest: str, client: int, samples: int | None, round_: int) -> str:
        batch = None if samples is None else self._streams.digest("probe", client, round_)
        return digest_of("score", self._data_digest, digest, self.shards[client], samples, batch)

    def _part(self, client: int, samples: int | None, round_: int) -> NDArray[np.int64]:
        rows = self._rows[client]
        if samples is None:
            return rows
        return rows[self._streams.generator("probe", client, round_).permutation(rows.size)[:samples]]

    def _run(self, trainings: Sequence[Training]) -> None:
        asked = {training.digest: training for training in trainings}
        known = self._known(asked, self._train, TrainingResult)
        for training in trainings:
            training.settle(known[training.digest])

    def _train(self, trainings: list[Training]) -> list[TrainingResult]:
        self.trainings += len(trainings)
        return self.executor.train([training.task() for training in trainings])

    def _known(
        self, asked: Mapping[str, Asked], compute: Callable[[list[Asked]], list[Found]], kind: type[Found]
    ) -> dict[str, Found]:
        """Return results by digest: those that the store has, the others computed and kept."""
        known: dict[str, Found] = {}
        for digest in asked:
            if isinstance(found := self.store.get(digest), kind):
                known[digest] = found
        new = [digest for digest in asked if digest not in known]
        computed = compute([asked[digest] for digest in new]) if new else []
        for digest, result in zip(new, computed, strict=True):
            known[digest] = result
            self.store.put(digest, result)
        return known


def result_of(update: UpdateHandle) -> TrainingResult:
    """Return what an update's training gave; it must have run."""
    if update.training.result is None:
        raise RuntimeError(f"training {update.training.digest} has not run")
    return update.training.result
