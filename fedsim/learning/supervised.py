"""Supervised federated learning by handles: nothing is trained before its numbers are needed.

This module builds the lineage of handles; `fedsim.learning.lineage.computation` computes their numbers.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray, Vector
from fedsim.errors import ScenarioError
from fedsim.learning.aggregation import aggregated, checked_weights, difference_from, stepped, weighted_mean
from fedsim.learning.contracts import (
    Evaluation,
    ExecutorUsed,
    KnownEvaluation,
    Model,
    Of,
    PendingEvaluation,
    Release,
    Update,
    Work,
    check_of,
)
from fedsim.learning.executors.contracts import Executor, OptimizerState, TrainingJob, TrainingSetup
from fedsim.learning.lineage.computation import Computation
from fedsim.learning.lineage.handles import Combined, ModelHandle, StateHandle, Training, UpdateHandle, digest_of
from fedsim.learning.lineage.store import MemoryStore, Store
from fedsim.learning.local_training import checked_probe, probe_samples
from fedsim.learning.models.layout import ModelLayout
from fedsim.learning.models.settings import Architecture
from fedsim.learning.server_optimizers import ServerOptimizer
from fedsim.learning.update_metrics import deviations, measure
from fedsim.registry import identity
from fedsim.streams import Streams
from fedsim.units import BITS_PER_FLOAT32


class SupervisedLearner:
    """Supervised federated learning: global models, edge servers' models, clients' updates.

    Streams: ``("model",)`` initial weights, ``("split",)``, ``("training", client, version)`` batch order and
    dropout, ``("probe", client, round)`` mini-batch of a probe, ``("privacy-noise", client, index)``.

    The stream of a training has the client and the version of its base as keys, so its draws do not depend on the other
    clients, the order or the batch. Versions grow along every line of descent (a merged model's is beyond those of its
    parents), so on no line does a client meet the same draws twice. A client that trains again from the very same model
    repeats the same training (one digest, one result), unless ``repeat`` differs. Models of the same version in
    different branches (edge servers, asynchronous rounds, another policy) are different bases: the digests of their
    trainings differ, while the order of the batches is the same, so that branches can be compared in pairs.

    Parameters
    ----------
    setup : what all trainings have in common
    rows : every client's samples in the training set, K arrays of shape (n,)
    layout, executor, server, streams : of the run
    mechanism : what makes updates private, or None
    store : of results; a `MemoryStore` of its own by default
    model_bits, flops_per_sample : stand for a bigger network, if given
    executor_used : describes the executor, if it is known

    Attributes
    ----------
    store : where results of trainings and probes are kept
    executor_used : description of the executor
    """

    def __init__(
        self,
        setup: TrainingSetup,
        *,
        rows: Sequence[IntArray],
        layout: ModelLayout,
        executor: Executor,
        server: ServerOptimizer,
        streams: Streams,
        mechanism: Any = None,
        store: Store | None = None,
        model_bits: float | None = None,
        flops_per_sample: float | None = None,
        executor_used: ExecutorUsed | None = None,
    ) -> None:
        data = setup.data
        self.samples = np.array([part.size for part in rows], dtype=np.int64)
        self.store: Store = MemoryStore() if store is None else store
        self._results = Computation(layout, executor, rows, data.digest, streams, mechanism, self.store)
        self._smallest_batch, self._streams = layout.smallest_batch, streams
        self._setup, self._flops_per_sample = setup, flops_per_sample
        self._local, self._server, self._mechanism = setup.local, server, mechanism
        self.model_bits: float = model_bits or float(BITS_PER_FLOAT32 * layout.initial.size)
        self._identities = identity(server), identity(mechanism)
        self._states: dict[int, StateHandle] = {}
        self.executor_used: ExecutorUsed | None = executor_used
        self._refuse_clients_without_a_batch()
        model = identity(setup.model)
        self._task = digest_of(data.digest, model, identity(setup.local), *self._results.fingerprint)
        start = digest_of("initial", model, str(data.shape), data.classes, setup.seed)
        self._initial = ModelHandle(start, 0, vector=layout.initial)

    @property
    def trainings(self) -> int:
        """How many trainings this learner has computed; those found in the store do not count."""
        return self._results.trainings

    @property
    def work(self) -> Work:
        """What has been computed so far, and what was found."""
        return Work(trained=self._results.trainings)

    @property
    def architecture(self) -> Architecture:
        """The model without its numbers."""
        return Architecture(self._setup.model, self._setup.data.shape, self._setup.data.classes)

    @cached_property
    def flops_per_sample(self) -> float:
        """Floating-point operations to train on one sample, counted when they are first asked for."""
        from fedsim.learning.models.flops import training_flops

        return self._flops_per_sample or training_flops(
            self._setup.model, self._setup.data.shape, self._setup.data.classes
        )

    def work_samples(self, client: IntArray, work: FloatArray | None = None) -> FloatArray:
        """Return how many samples each client passes through its model in one local training, shape (n,)."""
        share = 1.0 if work is None else work
        return self._local.work_samples(self.samples[client], share, self._smallest_batch)

    def whole_steps(self, client: IntArray, work: FloatArray, *, up: bool) -> FloatArray:
        """Return the share of each client's work nearest to a wish that is a whole number of batches, shape (n,)."""
        return self._local.whole_steps(self.samples[client], work, self._smallest_batch, up=up)

    def initial(self) -> Model:
        """Return the model of version 0."""
        return self._initial

    def updates(
        self,
        model: Model,
        client: IntArray,
        releases: Mapping[int, Release] | None = None,
        work: FloatArray | None = None,
        repeat: int = 0,
    ) -> list[Update]:
        """Return what each client of a cohort of shape (n,) would send; refuse releases without a mechanism.

        With ``keep_optimizer_state`` each training goes on from the state that the client's last aggregated update
        left, as of this call.
        """
        made = releases or {}
        if made and self._mechanism is None:
            raise ScenarioError("privacy: an update is to be released, but the learner has no mechanism")
        base = cast(ModelHandle, model)
        shares = np.ones(len(client)) if work is None else np.asarray(work, dtype=np.float64)
        return [
            self._update(base, one, made.get(i), share, repeat)
            for i, (one, share) in enumerate(zip(client.tolist(), shares.tolist(), strict=True))
        ]

    def aggregate(
        self, model: Model, updates: Sequence[Update], weights: FloatArray, *, of: Of = "difference"
    ) -> Model:
        """Return the next model from updates and their weights, shape (n,); refuse weights that are not finite.

        Differences are combined: what was sent, or with ``of = "model"`` what was sent plus the client's base minus
        ``model``, rounded to float32.
        """
        check_of(of)
        current, delivered = cast(ModelHandle, model), [cast(UpdateHandle, update) for update in updates]
        chosen = checked_weights(weights, len(delivered), "updates")
        self._keep_states(delivered)
        # With every base the model itself both ways give the same numbers, and so get the same digest.
        moved = of == "model" and any(update.base.digest != current.digest for update in delivered)

        def combine() -> Combined:
            sent = [self._results.sent(update) for update in delivered]
            if moved:
                # The bases have their numbers, since the trainings have run.
                pairs = zip(sent, delivered, strict=True)
                sent = [difference_from(current.vector, update.base.vector, vector) for vector, update in pairs]
            return aggregated(
                self._server, self._results.layout.parameters, current.vector, sent, chosen, current.server_state
            )

        lineage = [current.digest, *(update.digest for update in delivered)]
        rule = "aggregate-models" if moved else "aggregate"
        digest = digest_of(rule, self._identities[0], *lineage, chosen.tobytes())
        trainings = [update.training for update in delivered]
        return ModelHandle(digest, current.version + 1, [current, *trainings], combine)

    def merge(self, models: Sequence[Model], weights: FloatArray, version: int | None = None) -> Model:
        """Return the mean of models with weights of shape (n,), which are refused unless at least 0 and of sum 1."""
        merged = [cast(ModelHandle, model) for model in models]
        chosen = checked_weights(weights, len(merged), "models", of_a_mean=True)

        def combine() -> Combined:
            return weighted_mean([model.vector for model in merged], chosen), None

        digest = digest_of("merge", *(model.digest for model in merged), chosen.tobytes())
        after = max(model.version for model in merged) + 1 if version is None else version
        return ModelHandle(digest, after, merged, combine)

    def trained(self, base: Model, update: Update) -> Model:
        """Return a client's own model: the one that it started from plus what it sent; computes nothing."""
        start, sent = cast(ModelHandle, base), cast(UpdateHandle, update)
        self._keep_states([sent])

        def combine() -> Combined:
            return (start.vector.astype(np.float64) + self._results.sent(sent)).astype(np.float32), None

        digest = digest_of("trained", start.digest, sent.digest)
        return ModelHandle(digest, start.version + 1, [start, sent.training], combine)

    def server_step(self, model: Model, mean: Model, optimizer: ServerOptimizer | None = None) -> Model:
        """Return the server optimiser's step from a server's model with the update ``mean - model``."""
        current, target, rule = cast(ModelHandle, model), cast(ModelHandle, mean), optimizer or self._server
        if rule.adds_update:
            return mean

        def combine() -> Combined:
            update = (target.vector.astype(np.float64) - current.vector).astype(np.float32)
            return stepped(rule, self._results.layout.parameters, current.vector, update, current.server_state)

        digest = digest_of("server-step", identity(rule), current.digest, target.digest)
        return ModelHandle(digest, target.version, [current, target], combine)

    def with_state_of(self, model: Model, previous: Model) -> Model:
        """Return a model with the state that the server optimiser had in another one; computes nothing."""
        current, last = cast(ModelHandle, model), cast(ModelHandle, previous)
        if self._server.adds_update or current is last:
            return model

        def combine() -> Combined:
            return current.vector, last.server_state

        digest = digest_of("with-state-of", current.digest, last.digest)
        return ModelHandle(digest, current.version, [current, last], combine)

    def measure(self, updates: Sequence[Update], needs: Collection[str]) -> dict[str, NDArray[Any]]:
        """Return measurements of delivered updates; trainings that have not run are run."""
        return measure(self._results, [cast(UpdateHandle, update) for update in updates], needs)

    def deviations(
        self, fresh: Sequence[Update], fresh_weights: FloatArray | None, stale: Sequence[Update]
    ) -> FloatArray:
        """Return REFL's Lambda_s of each stale update, shape (len(stale),)."""
        new, old = ([cast(UpdateHandle, update) for update in part] for part in (fresh, stale))
        return deviations(self._results, new, fresh_weights, old)

    def probe_losses(self, model: Model, client: IntArray, samples: int | None, round_: int) -> FloatArray:
        """Return the mean loss of a model on each client's own data, or on a mini-batch of it, shape (n,)."""
        handle, most = cast(ModelHandle, model), None if samples is None else checked_probe(samples)
        start = (handle.digest, self.vector(handle))
        scores = self._results.scores([start] * len(client), client.tolist(), most, round_)
        return np.array([score.loss for score in scores], dtype=np.float64)

    def probe_samples(self, client: IntArray, samples: int | None) -> FloatArray:
        """Return the work of a probe as a number of samples trained on, shape (n,)."""
        return probe_samples(self.samples[client], samples)

    def evaluate(self, model: Model) -> Evaluation:
        """Return accuracy and loss of a model on the whole test set, running the trainings that it descends from."""
        return self._results.evaluate(cast(ModelHandle, model))

    def start_evaluation(self, model: Model) -> PendingEvaluation:
        """Run the trainings that a model needs, and begin its evaluation on the test set."""
        return KnownEvaluation(self.evaluate(model))

    def export(self, model: Model) -> Mapping[str, NDArray[Any]]:
        """Return a model's arrays under the names in its module, training what is needed."""
        return self._results.layout.named(self.vector(model))

    def vector(self, model: Model) -> Vector:
        """Return the numbers of a model, parameters first and then buffers, training what is needed."""
        return self._results.vector(cast(ModelHandle, model))

    def _update(
        self, base: ModelHandle, client: int, release: Release | None, work: float, repeat: int
    ) -> UpdateHandle:
        previous, results = self._states.get(client), self._results
        keys = (client, base.version, repeat) if repeat else (client, base.version)
        stream = self._streams.digest("training", *keys)
        before = None if previous is None else previous.digest
        digest = digest_of("training", self._task, base.digest, results.shards[client], stream, work, before)

        def make_job(vector: Vector, state: OptimizerState) -> TrainingJob:
            return results.job(client, keys, work, vector, state)

        training = Training(digest, base, previous, make_job)
        if release is not None:
            noise = self._streams.digest("privacy-noise", client, release.index)
            digest = digest_of("release", digest, self._identities[1], release.epsilon, noise)
        return UpdateHandle(digest, client, base, training, release)

    def _keep_states(self, delivered: Sequence[UpdateHandle]) -> None:
        """Let the clients' next trainings go on from the optimiser states that these updates left."""
        if self._local.keep_optimizer_state:
            self._states.update({update.client: update.training.state for update in delivered})

    def _refuse_clients_without_a_batch(self) -> None:
        least = self._smallest_batch
        if self._local.batch_size < least:
            raise ScenarioError(
                f"learning.local.batch_size: {self._local.batch_size} is not allowed; a model with batch "
                f"normalisation needs batches of at least {least} samples"
            )
        idle = np.flatnonzero(self._local.batches_per_epoch(self.samples, least) == 0)
        if idle.size:
            raise ScenarioError(
                f"learning.split: client {idle[0]} has {self.samples[idle[0]]} sample(s), too few for one batch: "
                f"this model needs at least {least}; allowed: a split that gives every client at least as many"
            )
