"""Evaluations and probes of models: found by their digests, or computed beside trainings."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray, Vector
from fedsim.identity import identity
from fedsim.learning.data.partitions.local_tests import LocalTests
from fedsim.learning.evaluation import ClientEvaluations, Evaluation, KnownEvaluation, PendingEvaluation
from fedsim.learning.executors.contracts import EvaluationJob, Executor, TrainingSetup
from fedsim.learning.lineage.asked import Model, State, digest_of, naming
from fedsim.learning.lineage.behaviour import behaviour_of_metrics
from fedsim.learning.lineage.computed import Computation
from fedsim.learning.lineage.local_work import LocalWork
from fedsim.learning.lineage.verification import Verification
from fedsim.learning.models.layout import ModelLayout
from fedsim.learning.tasks.of_labels import Classification
from fedsim.learning.torch_modes import own_modes
from fedsim.streams import Streams

Found = Sequence[Evaluation]

_MOST_UNDER_WAY: Final = 2
"""Calls that may wait or run, each with its models in memory."""

_GROUP: Final = 32
"""Most trainings that wait for a model's evaluation: with asynchronous servers those of many models run together."""

_GROUP_BYTES: Final = 2**28
"""Bytes of models that may wait for their evaluation."""


class Running:
    """Evaluations by one call of the executor beside the trainings; those of models without numbers begin later."""

    def __init__(self, begin: Callable[[], None] | None = None) -> None:
        self._begin = begin
        self.future: Future[Found] | None = None
        self.then: Callable[[Found], None] | None = None

    def done(self) -> bool:
        return self.future is not None and self.future.done()

    def results(self) -> Found:
        """Return the results, or raise the call's error; begins and waits if need be."""
        if self.future is None and self._begin is not None:
            self._begin()
        if self.future is None:
            raise RuntimeError("an evaluation has not begun")
        found = self.future.result()
        then, self.then = self.then, None
        if then is not None:
            then(found)
        return found

    def result(self) -> Evaluation:
        (found,) = self.results()
        return found


class Evaluator:
    """Evaluates jobs by the executor, one call at a time."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self._pool: ThreadPoolExecutor | None = None
        self._under_way: deque[Running] = deque()

    def start(
        self, jobs: Sequence[EvaluationJob], then: Callable[[Found], None], running: Running | None = None
    ) -> Running:
        """Begin to evaluate jobs; never waits, as the executor may train meanwhile and wait for its reader."""
        running = running or Running()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="evaluation")
        try:
            running.future, running.then = self._pool.submit(self._evaluate, jobs), then
        except BaseException:
            # A thread that Ctrl-C has found while it started is one that nothing else would end, and Python waits for.
            self._pool.shutdown(wait=False, cancel_futures=True)
            raise
        self._under_way.append(running)
        return running

    def run(self, jobs: Sequence[EvaluationJob]) -> Found:
        self.settle(0)
        return self._evaluate(jobs)

    @own_modes()
    def _evaluate(self, jobs: Sequence[EvaluationJob]) -> Found:
        return self.executor.evaluate(jobs)

    def settle(self, most: int = _MOST_UNDER_WAY) -> None:
        while len(self._under_way) > most:
            running = self._under_way.popleft()
            if running.future is not None and running.future.exception() is None:
                running.results()


class Evaluations:
    """Evaluations and probes of one run, and how many were computed and found."""

    def __init__(
        self,
        computation: Computation,
        verification: Verification,
        setup: TrainingSetup,
        layout: ModelLayout,
        basis: str,
        rows: Sequence[IntArray],
        shards: Sequence[str],
        streams: Streams,
    ) -> None:
        self.evaluated = self.evaluations_found = self.probed = self.probes_found = 0
        self.scores, self._test_samples = setup.scores, len(setup.data.test_y)
        self.behaviour_of_metrics = behaviour_of_metrics(setup, layout)
        judged = identity(setup.task), *filter(None, (self.behaviour_of_metrics,))
        self._judged = () if setup.task == Classification() else judged
        self.computation, self._known, self._verification = computation, computation.known, verification
        self._basis, self._rows, self._shards, self._streams = basis, rows, shards, streams
        self._most = min(_GROUP, _GROUP_BYTES // layout.initial.nbytes)
        self._evaluator = Evaluator(computation.executor)
        self._later: dict[Model, Running] = {}
        computation.when_known = self._evaluate

    def start_evaluation(self, model: Model) -> PendingEvaluation:
        """Look up the evaluation of a model on the test set, or begin it."""
        if model.evaluation is not None:
            return model.evaluation
        digest = self._evaluation_digest(model)
        found = self._known.records([digest]).get(digest)
        if found is not None:
            self.evaluations_found += 1
            known = self.scores.of_record(found, self._test_samples)
            self._verification.of_evaluation(
                model, known, lambda: self._evaluator.run([EvaluationJob(model.vector)])[0]
            )
            model.evaluation = KnownEvaluation(known)
            return model.evaluation
        later = model.evaluation = self._later[model] = Running(self.begin)
        # Without stale updates no training can run beside those of the next model, so that to wait gains nothing.
        if not model.stale or model.trainings >= self._most:
            self.begin()
        return later

    def begin(self) -> None:
        models = list(self._later)
        for model in models:
            if model.known:
                self._evaluate(model)
        self.computation.compute(models)
        for model in models:  # those that the store had
            self._evaluate(model)
        self._evaluator.settle()

    def flush(self) -> None:
        self._evaluator.settle(0)
        self._known.flush()

    def probe_losses(self, model: Model, client: Sequence[int], samples: int | None, round_: int) -> list[float]:
        """Return the mean loss of a model on clients' data, or on a mini-batch of it; looked up where it is stored."""
        most = [samples if samples is not None and samples < self._rows[one].size else None for one in client]
        digests = [self.digest(model.digest, one, count, round_) for one, count in zip(client, most, strict=True)]
        losses = {digest: record["loss"] for digest, record in self._known.records(digests).items()}
        parts = dict(zip(digests, zip(client, most, strict=True), strict=True))
        new = [digest for digest in parts if digest not in losses]
        self.probes_found += len(losses)
        if new:
            vector = self.computation.vector(model)
            jobs = [EvaluationJob(vector, self._part(*parts[digest], round_)) for digest in new]
            self.probed += len(new)
            found = self._evaluator.run(jobs)
            self._put(new)(found)
            losses |= {digest: one.loss for digest, one in zip(new, found, strict=True)}
        return [losses[digest] for digest in digests]

    def start(self, models: Mapping[str, tuple[Vector, int]], rows: Sequence[IntArray] | None = None) -> Running:
        """Begin to evaluate models on rows of clients, by default all that they train on, beside trainings."""
        self.probed += len(models)
        of = self._rows if rows is None else rows
        jobs = [EvaluationJob(model, of[client]) for model, client in models.values()]
        return self._evaluator.start(jobs, self._put(list(models)))

    def together(self, model: Vector, clients: Mapping[str, int], rows: Sequence[IntArray]) -> Found:
        """Evaluate one model on rows of several clients in common batches, where the executor can."""
        self.probed += len(clients)
        parts = [rows[client] for client in clients.values()]
        sizes = np.array([part.size for part in parts], dtype=np.int64)
        (whole,) = self._evaluator.run([EvaluationJob(model, np.concatenate(parts), sizes)])
        found = whole.parts or self._evaluator.run([EvaluationJob(model, part) for part in parts])
        self._put(list(clients))(found)
        return found

    def digest(self, model: str, client: int, samples: int | None = None, round_: int = 0) -> str:
        batch = None if samples is None else self._streams.digest("probe", client, round_)
        return digest_of("score", self._basis, model, self._shards[client], samples, batch, *self._judged)

    def local_digest(self, model: str, rows: str) -> str:
        return digest_of("local", self._basis, model, rows, *self._judged)

    def _evaluation_digest(self, model: Model) -> str:
        return digest_of("evaluation", self._basis, model.digest, *self._judged)

    def _evaluate(self, model: Model) -> None:
        later = self._later.pop(model, None)
        if later is not None:
            self.evaluated += 1
            self._evaluator.start([EvaluationJob(model.vector)], self._put([self._evaluation_digest(model)]), later)

    def _part(self, client: int, samples: int | None, round_: int) -> IntArray:
        rows = self._rows[client]
        if samples is None:
            return rows
        return rows[self._streams.generator("probe", client, round_).permutation(rows.size)[:samples]]

    def _put(self, digests: Sequence[str]) -> Callable[[Found], None]:
        def put(found: Sequence[Evaluation]) -> None:
            record = self.scores.record
            self._known.put_records({digest: record(one) for digest, one in zip(digests, found, strict=True)})

        return put


_QUANTILES: Final = {"p10": 0.1, "p50": 0.5, "p90": 0.9}
_TENTH: Final = 0.1

_BYTES_AT_ONCE: Final = 2**28
"""Bytes of clients' own models in one call of the executor."""


def evaluate_clients(
    evaluations: Evaluations,
    model: Model,
    tests: LocalTests,
    local: LocalWork,
    remembered: Mapping[int, State],
) -> ClientEvaluations:
    states = remembered if local.algorithm.personal else {}
    samples = tests.samples
    clients = np.flatnonzero(samples).tolist()
    # Of those that use the server's model: who passes through it together decides the last bits.
    together = digest_of("together", model.digest, "".join(tests.digests[one] for one in clients if one not in states))
    digests = {
        one: evaluations.local_digest(
            digest_of("own", model.digest, states[one].digest) if one in states else together, tests.digests[one]
        )
        for one in clients
    }
    owner = {digest: client for client, digest in digests.items()}
    computation = evaluations.computation
    records = computation.known.records(list(owner))
    known = {
        digest: evaluations.scores.of_record(record, int(samples[owner[digest]])) for digest, record in records.items()
    }
    evaluations.probes_found += len(known)
    missing = {digest: client for digest, client in owner.items() if digest not in known}
    if missing:
        computation.vector(model)
        if any(client not in states for client in missing.values()):
            shared = {digest: client for digest, client in owner.items() if client not in states}
            with naming(clients=list(shared.values())):
                known |= zip(shared, evaluations.together(model.vector, shared, tests.rows), strict=True)
        rest = [(digest, client) for digest, client in missing.items() if client in states]
        _remember(computation, [states[client] for _, client in rest])
        most = max(1, _BYTES_AT_ONCE // model.vector.nbytes)
        for first in range(0, len(rest), most):
            part = rest[first : first + most]
            own = {}
            for digest, client in part:
                with naming(clients=[client]):
                    own[digest] = local.own_model(model.vector, states[client]), client
            with naming(clients=[client for _, client in part]):
                known |= zip(own, evaluations.start(own, tests.rows).results(), strict=True)
    found = {client: known[digest] for client, digest in digests.items()}
    names = next((list(one.metrics) for one in found.values()), [])

    def column(name: str) -> FloatArray:
        values = np.full(samples.size, np.nan)
        values[list(found)] = [one.value(name) for one in found.values()]
        return values

    metrics = {name: column(name) for name in names}
    return ClientEvaluations(
        column("accuracy"), column("loss"), metrics, samples, local.algorithm.personal, tests.held_out
    )


def over_clients(found: ClientEvaluations) -> Evaluation:
    """Return the mean over the clients with local test samples, each counted once, and quantiles of each metric."""
    there = found.samples > 0
    if not there.any():
        return Evaluation(math.nan, math.nan, own=True, held_out=found.held_out)
    columns = {**({} if found.metrics else {"accuracy": found.accuracy}), **found.metrics}
    metrics = {name: float(values[there].mean()) for name, values in columns.items()}
    for name, values in columns.items():
        for part, share in _QUANTILES.items():
            metrics[f"{name}-{part}"] = float(np.quantile(values[there], share))
    if "accuracy" in columns:
        lowest = np.sort(found.accuracy[there])[: math.ceil(_TENTH * np.count_nonzero(there))]
        metrics["accuracy-worst-tenth"] = float(lowest.mean())
    accuracy, loss = (float(values[there].mean()) for values in (found.accuracy, found.loss))
    return Evaluation(accuracy, loss, metrics, own=True, held_out=found.held_out)


def _remember(computation: Computation, states: Sequence[State]) -> None:
    """Compute client states that are neither in memory nor in the store."""
    lost = [state for state in states if not computation.known.find_state(state)]
    updates = [state.update for state in lost if state.update is not None]
    computation.compute(updates)
    for update in updates:
        update.result = None
