"""Evaluations and probes of models: found by their digests, or computed beside trainings."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray, Vector
from fedsim.identity import identity
from fedsim.learning.data.partitions.local_tests import LocalTests
from fedsim.learning.evaluation import ClientEvaluations, Evaluation, KnownEvaluation, PendingEvaluation
from fedsim.learning.executors.contracts import EvaluationJob, TrainingSetup
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

_BYTES_AT_ONCE: Final = 2**28
"""Bytes of clients' own models in one call of the executor."""

_QUANTILES: Final = {"p10": 0.1, "p50": 0.5, "p90": 0.9}
_TENTH: Final = 0.1


class Later:
    """An evaluation by a call of the executor beside the trainings, which begins once the model has its numbers."""

    def __init__(self, evaluations: "Evaluations") -> None:
        self._evaluations = evaluations
        self.call: Future[Found] | None = None

    def done(self) -> bool:
        return self.call is not None and self.call.done()

    def result(self) -> Evaluation:
        """Return the result, or raise the call's error; begins and waits if need be."""
        if self.call is None:
            self._evaluations.begin()
        if self.call is None:
            raise RuntimeError("an evaluation has not begun")
        (found,) = self._evaluations.ended(self.call)
        return found


class Evaluations:
    """Evaluations and probes of one run, and how many were computed and found; one call of the executor at a time."""

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
        self._later: dict[Model, Later] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._under_way: deque[tuple[Future[Found], Sequence[str]]] = deque()
        """Calls, and the digests under which their results are to be put."""
        computation.when_known = self._evaluate

    def start_evaluation(self, model: Model) -> PendingEvaluation:
        """Look up the evaluation of a model on the test set, or begin it."""
        if model.evaluation is not None:
            return model.evaluation
        digest = self._digest("evaluation", model.digest)
        found = self._known.records([digest]).get(digest)
        if found is not None:
            self.evaluations_found += 1
            known = self.scores.of_record(found, self._test_samples)
            self._verification.of_evaluation(
                model, known, lambda: self.ended(self._submit([EvaluationJob(model.vector)]))[0]
            )
            model.evaluation = KnownEvaluation(known)
            return model.evaluation
        later = model.evaluation = self._later[model] = Later(self)
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
        self._settle()

    def flush(self) -> None:
        self._settle(0)
        self._known.flush()

    def probe_losses(self, model: Model, client: Sequence[int], samples: int | None, round_: int) -> list[float]:
        """Return the mean loss of a model on clients' data, or on a mini-batch of it; looked up where it is stored."""
        most = [samples if samples is not None and samples < self._rows[one].size else None for one in client]
        digests = [self.digest(model.digest, one, count, round_) for one, count in zip(client, most, strict=True)]
        losses = {digest: record["loss"] for digest, record in self._known.records(digests).items()}
        parts = dict(zip(digests, zip(client, most, strict=True), strict=True))
        self.probes_found += len(losses)
        if new := [digest for digest in parts if digest not in losses]:
            vector = self.computation.vector(model)
            jobs = {digest: EvaluationJob(vector, self._part(*parts[digest], round_)) for digest in new}
            losses |= {digest: one.loss for digest, one in self._now(jobs).items()}
        return [losses[digest] for digest in digests]

    def evaluate_clients(
        self, model: Model, tests: LocalTests, local: LocalWork, remembered: Mapping[int, State]
    ) -> ClientEvaluations:
        """Evaluate the model of each client with local test samples: its own, or the server's."""
        states = remembered if local.algorithm.personal else {}
        clients = np.flatnonzero(tests.samples).tolist()
        shared = [one for one in clients if one not in states]
        # Who passes through the server's model together decides the last bits.
        together = digest_of("together", model.digest, "".join(tests.digests[one] for one in shared))
        digests = {}
        for one in clients:
            used = digest_of("own", model.digest, states[one].digest) if one in states else together
            digests[one] = self._digest("local", used, tests.digests[one])
        records = self._known.records([*digests.values()])
        owner = {digest: client for client, digest in digests.items()}
        known = {
            digest: self.scores.of_record(record, int(tests.samples[owner[digest]]))
            for digest, record in records.items()
        }
        self.probes_found += len(known)
        if missing := [one for digest, one in owner.items() if digest not in known]:
            vector = self.computation.vector(model)
            if any(one not in states for one in missing):
                with naming(clients=shared):
                    known |= self._together(vector, {digests[one]: tests.rows[one] for one in shared})
            rest = [one for one in missing if one in states]
            _remember(self.computation, [states[one] for one in rest])
            most = max(1, _BYTES_AT_ONCE // vector.nbytes)
            for first in range(0, len(rest), most):
                jobs = {}
                for one in rest[first : first + most]:
                    with naming(clients=[one]):
                        own = local.own_model(vector, states[one], one, model.version)
                        jobs[digests[one]] = EvaluationJob(own, tests.rows[one])
                with naming(clients=rest[first : first + most]):
                    known |= self._now(jobs)
        found = {client: known[digest] for client, digest in digests.items()}
        names = next((list(one.metrics) for one in found.values()), [])

        def column(name: str) -> FloatArray:
            values = np.full(tests.samples.size, np.nan)
            values[list(found)] = [one.value(name) for one in found.values()]
            return values

        metrics = {name: column(name) for name in names}
        personal = local.algorithm.personal
        return ClientEvaluations(column("accuracy"), column("loss"), metrics, tests.samples, personal, tests.held_out)

    def start(self, models: Mapping[str, tuple[Vector, int]]) -> Future[Found]:
        """Begin to evaluate models, each on all that a client trains on, beside trainings."""
        self.probed += len(models)
        jobs = [EvaluationJob(model, self._rows[client]) for model, client in models.values()]
        return self._submit(jobs, list(models))

    def digest(self, model: str, client: int, samples: int | None = None, round_: int = 0) -> str:
        batch = None if samples is None else self._streams.digest("probe", client, round_)
        return self._digest("score", model, self._shards[client], samples, batch)

    def _digest(self, kind: str, *of: str | bytes | int | None) -> str:
        return digest_of(kind, self._basis, *of, *self._judged)

    def _evaluate(self, model: Model) -> None:
        later = self._later.pop(model, None)
        if later is not None:
            self.evaluated += 1
            later.call = self._submit([EvaluationJob(model.vector)], [self._digest("evaluation", model.digest)])

    def _part(self, client: int, samples: int | None, round_: int) -> IntArray:
        rows = self._rows[client]
        if samples is None:
            return rows
        return rows[self._streams.generator("probe", client, round_).permutation(rows.size)[:samples]]

    def _now(self, jobs: Mapping[str, EvaluationJob]) -> dict[str, Evaluation]:
        self.probed += len(jobs)
        return dict(zip(jobs, self.ended(self._submit([*jobs.values()], list(jobs))), strict=True))

    def _together(self, model: Vector, rows: Mapping[str, IntArray]) -> dict[str, Evaluation]:
        """Evaluate one model on several rows in common batches, where the executor can."""
        sizes = np.array([part.size for part in rows.values()], dtype=np.int64)
        (whole,) = self.ended(self._submit([EvaluationJob(model, np.concatenate([*rows.values()]), sizes)]))
        if not whole.parts:
            return self._now({digest: EvaluationJob(model, part) for digest, part in rows.items()})
        self.probed += len(rows)
        self._put(list(rows), whole.parts)
        return dict(zip(rows, whole.parts, strict=True))

    def _submit(self, jobs: Sequence[EvaluationJob], digests: Sequence[str] = ()) -> Future[Found]:
        """Begin to evaluate jobs; never waits, as the executor may train meanwhile and wait for its reader."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="evaluation")
        try:
            call = self._pool.submit(own_modes()(self.computation.executor.evaluate), jobs)
        except BaseException:
            # A thread that Ctrl-C has found while it started is one that nothing else would end, and Python waits for.
            self._pool.shutdown(wait=False, cancel_futures=True)
            raise
        self._under_way.append((call, digests))
        return call

    def ended(self, call: Future[Found]) -> Found:
        """Return the results of a call, which the store has then, as those of the calls before it."""
        while any(one is call for one, _ in self._under_way):
            self._settle(len(self._under_way) - 1)
        return call.result()

    def _settle(self, most: int = _MOST_UNDER_WAY) -> None:
        while len(self._under_way) > most:
            call, digests = self._under_way.popleft()
            if call.exception() is None:
                self._put(digests, call.result())

    def _put(self, digests: Sequence[str], found: Found) -> None:
        if digests:
            records = map(self.scores.record, found)
            self._known.put_records(dict(zip(digests, records, strict=True)))


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
