"""Where handles become numbers: trainings and probes go to the executor in batches, and are kept in the store."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from fedsim.arrays import IntArray, Vector
from fedsim.learning.contracts import Evaluation
from fedsim.learning.executors.contracts import (
    SEQUENTIAL,
    EvaluationJob,
    Executor,
    OptimizerState,
    TrainingJob,
    TrainingResult,
)
from fedsim.learning.lineage.handles import ModelHandle, Training, UpdateHandle, digest_of
from fedsim.learning.lineage.order import Node, materialize
from fedsim.learning.lineage.store import Kept, Store
from fedsim.learning.models.layout import ModelLayout
from fedsim.streams import Streams

Asked = TypeVar("Asked")
Found = TypeVar("Found", bound=Kept)


class Computation:
    """The numbers behind the handles of one learner.

    Parameters
    ----------
    layout : of the model
    executor : computes trainings and evaluations
    rows : every client's samples in the training set, K arrays of shape (n,)
    data_digest : digest of the data set
    streams : random streams of the run
    mechanism : what makes updates private, or None
    store : keeps results

    Attributes
    ----------
    trainings : how many trainings have been computed; those found in the store do not count
    shards : digest of every client's samples
    fingerprint : what distinguishes results of this executor in digests; empty for the bits of `SEQUENTIAL`
    """

    def __init__(
        self,
        layout: ModelLayout,
        executor: Executor,
        rows: Sequence[IntArray],
        data_digest: str,
        streams: Streams,
        mechanism: Any,
        store: Store,
    ) -> None:
        self.layout, self.executor, self.store, self.trainings = layout, executor, store, 0
        self.shards = [digest_of(part.tobytes()) for part in rows]
        self.fingerprint = () if executor.fingerprint == SEQUENTIAL else (executor.fingerprint,)
        self._rows, self._data_digest, self._streams, self._mechanism = rows, data_digest, streams, mechanism

    def materialize(self, wanted: Sequence[Node]) -> None:
        """Work out handles with all that they descend from."""
        materialize(wanted, self._run, self.executor.max_batch)

    def vector(self, model: ModelHandle) -> Vector:
        """Return the numbers of a model, parameters first and then buffers, shape (d,)."""
        self.materialize([model])
        return model.vector

    def evaluate(self, model: ModelHandle) -> Evaluation:
        """Return accuracy and loss of a model on the test set."""
        if model.evaluation is None:
            (model.evaluation,) = self.executor.evaluate([EvaluationJob(self.vector(model))])
        return model.evaluation

    def job(self, client: int, keys: tuple[int, ...], work: float, base: Vector, state: OptimizerState) -> TrainingJob:
        """Return what an executor must do for one client's training.

        Parameters
        ----------
        client : id
        keys : of the training's stream
        work : share of the local work, in (0, 1]
        base : numbers to start from, shape (d,)
        state : of the client's optimiser
        """
        return TrainingJob(base, self._rows[client], work, self._streams.generator("training", *keys), state)

    def sent(self, update: UpdateHandle) -> Vector:
        """Return what the server receives, the training having run: the difference, or its private release."""
        difference, release = result_of(update).difference, update.release
        if release is None:
            return difference
        rng = self._streams.generator("privacy-noise", update.client, release.index)
        sent = self._mechanism.release(difference, release.epsilon, self.layout.exempt, rng)
        return np.asarray(sent, dtype=np.float32)

    def scores(
        self, models: Sequence[tuple[str, Vector]], client: Sequence[int], samples: int | None = None, round_: int = 0
    ) -> list[Evaluation]:
        """Return accuracy and loss of models on clients' data, or on mini-batches of it.

        Parameters
        ----------
        models : digest and numbers of shape (d,) for each of n evaluations: a server's model or a client's own
        client : whose data, n ids
        samples : size of the mini-batch, the first of a permutation drawn for (client, round); None, or as many
            as the client has, for all
        round_ : used with ``samples`` only
        """
        most = [samples if samples is not None and samples < self._rows[one].size else None for one in client]
        jobs = [(vector, one, count) for (_, vector), one, count in zip(models, client, most, strict=True)]
        digests = [
            self._score_digest(digest, one, count, round_)
            for (digest, _), (_, one, count) in zip(models, jobs, strict=True)
        ]

        def compute(new: list[tuple[Vector, int, int | None]]) -> Sequence[Evaluation]:
            return self.executor.evaluate(
                [EvaluationJob(model, self._part(one, count, round_)) for model, one, count in new]
            )

        known = self._known(dict(zip(digests, jobs, strict=True)), compute, Evaluation)
        return [known[digest] for digest in digests]

    def _score_digest(self, digest: str, client: int, samples: int | None, round_: int) -> str:
        batch = None if samples is None else self._streams.digest("probe", client, round_)
        ingredients = (self._data_digest, digest, self.shards[client], samples, batch)
        return digest_of("score", *ingredients, *self.fingerprint)

    def _part(self, client: int, samples: int | None, round_: int) -> IntArray:
        rows = self._rows[client]
        if samples is None:
            return rows
        return rows[self._streams.generator("probe", client, round_).permutation(rows.size)[:samples]]

    def _run(self, trainings: Sequence[Training]) -> None:
        asked = {training.digest: training for training in trainings}
        known = self._known(asked, self._train, TrainingResult)
        for training in trainings:
            training.materialize(known[training.digest])

    def _train(self, trainings: list[Training]) -> Sequence[TrainingResult]:
        self.trainings += len(trainings)
        return list(self.executor.train([training.job() for training in trainings]))

    def _known(
        self, asked: Mapping[str, Asked], compute: Callable[[list[Asked]], Sequence[Found]], kind: type[Found]
    ) -> dict[str, Found]:
        """Return results by digest: those that the store has, the others computed and kept."""
        known: dict[str, Found] = {}
        for digest in asked:
            if isinstance(found := self.store.get(digest), kind):
                known[digest] = found
        new = [digest for digest in asked if digest not in known]
        computed = compute([asked[digest] for digest in new]) if new else ()
        for digest, result in zip(new, computed, strict=True):
            known[digest] = result
            self.store.put(digest, result)
        return known


def result_of(update: UpdateHandle) -> TrainingResult:
    """Return what an update's training gave; it must have run."""
    if update.training.result is None:
        raise RuntimeError(f"training {update.training.digest} has not run")
    return update.training.result
