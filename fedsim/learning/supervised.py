"""Supervised federated learning by handles: nothing is trained before its numbers are needed.

This module asks (`fedsim.learning.lineage.asked`); what is not known (`known`) is computed (`computed`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray, Vector
from fedsim.errors import ScenarioError
from fedsim.identity import identity, parts_of
from fedsim.learning.aggregation.combining import (
    Incoming,
    Of,
    WeightedSum,
    check_of,
    checked_weights,
    has_enough,
    incoming,
    stepped,
    weighted_mean,
)
from fedsim.learning.aggregation.contracts import Aggregator
from fedsim.learning.algorithms.plain import Plain
from fedsim.learning.blueprint import Blueprint
from fedsim.learning.contracts import Model, Release, Update
from fedsim.learning.data.partitions.local_tests import LocalTests
from fedsim.learning.data.partitions.statistics import label_counts
from fedsim.learning.drawn_samples import Drawn
from fedsim.learning.evaluation import ClientEvaluations, Evaluation, KnownEvaluation, PendingEvaluation
from fedsim.learning.executors.contracts import SEQUENTIAL, Executor, TrainingSetup
from fedsim.learning.lineage import asked
from fedsim.learning.lineage.asked import Combined, Recipe, Updates, digest_of
from fedsim.learning.lineage.behaviour import TriedRules, is_own, name_of
from fedsim.learning.lineage.computed import Computation
from fedsim.learning.lineage.evaluated import Evaluations, over_clients
from fedsim.learning.lineage.known import Keeping, Known
from fedsim.learning.lineage.local_work import LocalWork
from fedsim.learning.lineage.verification import Verification, distrust, trusted
from fedsim.learning.local_training import check_batches, checked_probe, probe_samples
from fedsim.learning.models.layout import Widths
from fedsim.learning.models.settings import Architecture
from fedsim.learning.server_optimizers.averaging import FedAvg
from fedsim.learning.server_optimizers.contracts import ServerOptimizer
from fedsim.learning.sizes import ExecutorUsed, Work
from fedsim.learning.steps.contracts import StepRun
from fedsim.learning.steps.listed import Steps
from fedsim.learning.store.choice import open_store
from fedsim.learning.store.contracts import Store
from fedsim.learning.tasks.scores import own_task
from fedsim.learning.training_run import TrainingRun
from fedsim.learning.update_metrics import checked_fresh_weights, deviations, measure
from fedsim.units import BITS_PER_FLOAT32


class Rules(Protocol):
    """The fields of a learning table that a learner reads, beside the steps of its parts."""

    @property
    def server(self) -> ServerOptimizer: ...
    @property
    def aggregation(self) -> Aggregator: ...
    @property
    def allow_empty(self) -> bool: ...
    @property
    def model_bits(self) -> float | None: ...
    @property
    def flops_per_sample(self) -> float | None: ...


class SupervisedLearner:
    """Supervised federated learning: global models, edge servers' models, clients' updates.

    Streams: ``("model",)`` initial weights, ``("split",)``, ``("split-rounding",)`` and ``("split-ties",)`` the
    division of the samples, ``("training", client, version)`` batch order and dropout, ``("probe", client, round)``
    mini-batch of a probe, ``("privacy-noise", client, index)``, ``("compression", client, version)`` draws of a
    compressor.

    The stream of a training has the client and the version of its base as keys, so that its draws do not depend on the
    other clients, the order or the batch. Versions grow along every line of descent, so on no line does a client meet
    the same draws twice. A client that trains again from the very same model repeats the same training (one digest, one
    result), unless ``repeat`` differs. Models of the same version in different branches (edge servers, asynchronous
    rounds, another policy) are different bases: the digests of their trainings differ, while the order of the batches
    is the same, so that branches can be compared in pairs.
    """

    def __init__(
        self,
        settings: Rules,
        run: TrainingRun,
        setup: TrainingSetup,
        blueprint: Blueprint,
        executor: Executor,
        rows: Sequence[IntArray],
        tests: Callable[[], LocalTests] | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        layout, behaviour, streams = blueprint.layout, blueprint.behaviour, run.streams
        self._layout, self._setup, self._local, self._settings = layout, setup, setup.local, settings
        self._server, self._aggregator = settings.server, settings.aggregation
        self.samples = np.array([part.size for part in rows], dtype=np.int64)
        self._rows = rows
        self._tests = cache(tests or (lambda: LocalTests(rows, held_out=False)))
        self.store: Store = open_store(run.store)
        self._algorithm = local = LocalWork(
            setup.algorithm, setup.local, layout, blueprint.narrow, self.samples, streams
        )
        parts = {**run.parts, **dict(parts_of(settings, "learning"))}
        self.steps = steps = Steps(parts, StepRun(run.clients, streams, layout=layout))
        made_of = [step.made_of for step in reversed(steps.listed)]
        self._tried = tried = TriedRules(layout.initial.size, layout.tensors, run.clients)
        of_steps = "".join(tried.behaviour(one).text for one in made_of if is_own(one))
        self._known = Known(self.store, run.keeping or Keeping())
        own_parts = [one for one in (self._server, self._aggregator, *made_of) if is_own(one)]
        self._computation = Computation(executor, rows, streams, steps, local, self._known, own_parts)
        other = () if executor.fingerprint == SEQUENTIAL else (executor.fingerprint,)
        made_by = digest_of(blueprint.numerics, setup.data.digest, *other, *filter(None, (behaviour.text,)))
        basis = trusted(made_by, self.store)
        self._computation.distrust = lambda: distrust(made_by, self.store)
        own_code = filter(is_own, (setup.model, setup.task, setup.algorithm, *own_parts))
        parts_of_own = ", ".join(map(name_of, own_code))
        self._verification = Verification(self._computation, executor.fingerprint, parts_of_own)
        shards = [digest_of(part.tobytes()) for part in rows]
        self._evaluations = Evaluations(
            self._computation, self._verification, setup, layout, basis, rows, shards, streams
        )
        self._in_use = 0
        self._newest: asked.Model | None = None
        self._price(settings.model_bits, *local.bits(steps))
        self.remembers: bool = steps.remembers
        own = () if type(setup.algorithm) is Plain else (identity(setup.algorithm), len(rows))
        task = (identity(setup.task.model_copy(update={"metrics": ()})),) if own_task(setup.task) else ()
        summing = own if self._aggregator.adds_up else (*own, tried.identity(self._aggregator))
        rule = tried.identity(self._server)
        self._server_identity = digest_of(rule, *summing) if summing else rule
        behaviours = [behaviour, *map(tried.behaviour, own_parts)]
        untested = self._tests().without if local.algorithm.personal else ""
        more = [*(step.note for step in steps.listed), untested, *(one.untold for one in behaviours)]
        self.notes = (*notes, *filter(None, more))
        done = [one.text for one in behaviours if one.text and not one.untold]
        done += filter(None, (self._evaluations.behaviour_of_metrics,))
        self.data_digest: str = digest_of(setup.data.digest, *done) if done else setup.data.digest
        self.architecture = Architecture(setup.model, setup.data.shape, setup.outputs)
        self.executor_used: ExecutorUsed | None = blueprint.used
        check_batches(setup.local, self.samples, layout.smallest_batch, allow_empty=settings.allow_empty)
        model = identity(setup.model)
        work = digest_of("training", basis, model, identity(setup.local), streams.digest("training"), *own, *task)
        keeps = setup.local.keep_optimizer_state or local.algorithm.remembers
        self._updates = Updates(work, shards, steps, of_steps, local.algorithm.ratios, keeps=keeps)
        initial = digest_of("initial", basis, model, str(setup.data.shape), setup.outputs, setup.seed)
        self._initial = asked.Model(initial, 0, vector=layout.initial)

    def _price(self, model_bits: float | None, received: float, sent: float) -> None:
        """Let bits of messages be those of this model, or in proportion those of a bigger one that it stands for."""
        whole_bits = float(BITS_PER_FLOAT32 * self._layout.initial.size)
        self.model_bits: float = received if model_bits is None else model_bits * (received / whole_bits)
        self.update_bits: float = sent if model_bits is None else model_bits * (sent / whole_bits)
        scale = 1.0 if model_bits is None else model_bits / whole_bits
        self.widths: Widths | None = self._algorithm.widths(scale, self.steps)

    @property
    def work(self) -> Work:
        """What has been computed so far; a training that has not run so far counts as found."""
        trained, of = self._computation.trained, self._evaluations
        found = max(0, self._in_use - trained)
        return Work(trained, found, of.evaluated, of.evaluations_found, of.probed, of.probes_found)

    @cached_property
    def label_counts(self) -> IntArray | None:
        return label_counts(self._setup.data, self._rows)

    @cached_property
    def flops_per_sample(self) -> float:
        if self._settings.flops_per_sample:
            return self._settings.flops_per_sample
        digest = digest_of("flops", self._initial.digest)
        if not (found := self._known.records([digest])):
            from fedsim.learning.models.flops import training_flops

            whole = training_flops(self._setup.model, self._setup.data.shape, self._setup.outputs)
            found = {digest: {"flops": whole}}
            self._known.put_records(found)
        return found[digest]["flops"]

    def work_samples(self, client: IntArray, work: FloatArray | None = None, got: IntArray | None = None) -> FloatArray:
        share, samples = 1.0 if work is None else work, self.samples[client] if got is None else got
        return self._local.work_samples(samples, share, self._layout.smallest_batch)

    def whole_steps(self, client: IntArray, work: FloatArray, *, up: bool) -> FloatArray:
        return self._local.whole_steps(self.samples[client], work, self._layout.smallest_batch, up=up)

    def initial(self) -> Model:
        return self._initial

    def updates(
        self,
        model: Model,
        client: IntArray,
        releases: Mapping[int, Release] | None = None,
        work: FloatArray | None = None,
        repeat: int = 0,
        level: IntArray | None = None,
        drawn: Drawn | None = None,
    ) -> Sequence[Update]:
        made = releases or {}
        if made and not self.steps.releases:
            raise ScenarioError("privacy: an update is to be released, but the learner has no mechanism")
        return self._updates.of(cast(asked.Model, model), client, made, work, repeat, level, drawn)

    def aggregate(
        self, model: Model, updates: Sequence[Update], weights: FloatArray, *, of: Of = "difference"
    ) -> Model:
        """Return the next model, or ``model`` where fewer updates have a weight than the aggregation needs."""
        check_of(of)
        current, delivered = cast(asked.Model, model), tuple(cast(Sequence[asked.Update], updates))
        chosen = checked_weights(weights, len(delivered), "updates")
        if not has_enough(self._aggregator, chosen):
            return model
        self._updates.aggregated(delivered)
        # With every base the model itself both ways give the same numbers, and so get the same digest.
        moved = of == "model" and any(update.base.digest != current.digest for update in delivered)
        kind = "aggregate-models" if moved else "aggregate"
        sent = "".join([update.digest for update in delivered])
        digest = digest_of(kind, self._server_identity, current.digest, sent, chosen.tobytes())
        parameters = self._layout.parameters

        def begin() -> Incoming:
            return self._sum_of(current, delivered, chosen)

        def end(total: Incoming) -> Combined:
            return total.stepped(parameters, current.vector, current.server_state)

        self._use(delivered)
        return self._made(digest, current.version + 1, Recipe([current], end, delivered, chosen.tolist(), begin, moved))

    def merge(self, models: Sequence[Model], weights: FloatArray, version: int | None = None) -> Model:
        merged = [cast(asked.Model, model) for model in models]
        chosen = checked_weights(weights, len(merged), "models", of_a_mean=True)

        def mean(_: None) -> Combined:
            return weighted_mean([model.vector for model in merged], chosen), None

        digest = digest_of("merge", *(model.digest for model in merged), chosen.tobytes())
        after = max(model.version for model in merged) + 1 if version is None else version
        return self._made(digest, after, Recipe(merged, mean))

    def trained(self, base: Model, update: Update) -> Model:
        start, sent = cast(asked.Model, base), cast(asked.Update, update)
        self._updates.aggregated([sent])
        parameters, plain = self._layout.parameters, FedAvg()

        def end(total: Incoming) -> Combined:
            return total.stepped(parameters, start.vector, None)

        self._use([sent])
        recipe = Recipe([start], end, [sent], [1.0], lambda: WeightedSum(plain, start.vector))
        return self._made(digest_of("trained", start.digest, sent.digest), start.version + 1, recipe)

    def server_step(self, model: Model, mean: Model, optimizer: ServerOptimizer | None = None) -> Model:
        current, target, rule = cast(asked.Model, model), cast(asked.Model, mean), optimizer or self._server
        if rule.adds_update:
            return mean

        def step(_: None) -> Combined:
            update = (target.vector.astype(np.float64) - current.vector).astype(np.float32)
            return stepped(rule, self._layout.parameters, current.vector, update, current.server_state)

        digest = digest_of("server-step", self._tried.identity(rule), current.digest, target.digest)
        return self._made(digest, target.version, Recipe([current, target], step))

    def with_state_of(self, model: Model, previous: Model) -> Model:
        current, last = cast(asked.Model, model), cast(asked.Model, previous)
        if self._server.adds_update or current is last:
            return model

        def both(_: None) -> Combined:
            return current.vector, last.server_state

        digest = digest_of("with-state-of", current.digest, last.digest)
        return self._made(digest, current.version, Recipe([current, last], both))

    def measure(self, updates: Sequence[Update], needs: Collection[str]) -> dict[str, NDArray[Any]]:
        used = cast(Sequence[asked.Update], updates)
        self._use(used if needs else ())
        return measure(self._evaluations, self._layout.parameters, used, needs, self._newest)

    def deviations(
        self, fresh: Sequence[Update], fresh_weights: FloatArray | None, stale: Sequence[Update]
    ) -> FloatArray:
        new, old = cast(Sequence[asked.Update], fresh), cast(Sequence[asked.Update], stale)
        weights = checked_fresh_weights(len(new), fresh_weights)
        if not len(old) or not weights.sum() > 0:
            return np.zeros(len(old))
        self._use((*new, *old))
        return deviations(self._computation, self._layout.parameters, new, weights, old)

    def probe_losses(self, model: Model, client: IntArray, samples: int | None, round_: int) -> FloatArray:
        most = None if samples is None else checked_probe(samples)
        losses = self._evaluations.probe_losses(cast(asked.Model, model), client.tolist(), most, round_)
        return np.array(losses, dtype=np.float64)

    def probe_samples(self, client: IntArray, samples: int | None) -> FloatArray:
        return probe_samples(self.samples[client], samples)

    def evaluate(self, model: Model) -> Evaluation:
        return self.start_evaluation(model).result()

    def start_evaluation(self, model: Model) -> PendingEvaluation:
        if self._algorithm.algorithm.personal:
            return KnownEvaluation(over_clients(self.evaluate_clients(model)))
        return self._evaluations.start_evaluation(cast(asked.Model, model))

    def evaluate_clients(self, model: Model) -> ClientEvaluations:
        states = self._updates.states
        return self._evaluations.evaluate_clients(cast(asked.Model, model), self._tests(), self._algorithm, states)

    def export(self, model: Model) -> Mapping[str, NDArray[Any]]:
        """Return a model's arrays under the names in its module; the store has the model then."""
        vector = self.vector(model)
        self._known.put(cast(asked.Model, model))
        return self._layout.named(vector)

    def flush(self) -> None:
        self._evaluations.flush()

    def vector(self, model: Model) -> Vector:
        return self._computation.vector(cast(asked.Model, model))

    def _made(self, digest: str, version: int, recipe: Recipe) -> asked.Model:
        model = self._newest = asked.Model(digest, version, recipe)
        self._computation.bound(model, self._updates.states)
        return model

    def _sum_of(self, model: asked.Model, updates: Sequence[asked.Update], weights: FloatArray) -> Incoming:
        """Begin the sum of updates, with the server's noise if it adds any."""
        optimizer, noise = self._server, None
        if not self.steps.lossless or any(one.release is not None for one in updates):
            noise = self.steps.server([one.sender for one in updates], weights)
        if noise is not None:
            noised = WeightedSum(optimizer, model.vector)
            noised.add_whole(noise())
            return noised
        of_algorithm = None if self._algorithm.plain else self._algorithm.sum_of(updates, weights)
        if of_algorithm is not None:
            return of_algorithm(optimizer, model.vector)
        return incoming(self._aggregator, optimizer, model.vector, len(updates))

    def _use(self, updates: Sequence[asked.Update]) -> None:
        """Count updates that are in use, each once, and compare some of those that the store has."""
        new = [update for update in updates if not update.used]
        for update in new:
            update.used = True
        self._in_use += len(new)
        if not self._known.alone:
            self._verification.of_trainings(new)
