"""Evaluations and probes of models: found by their digests, or computed beside trainings."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import numpy as np

from fedsim.arrays import IntArray, Vector
from fedsim.identity import identity
from fedsim.learning.evaluation import Evaluation, KnownEvaluation, PendingEvaluation
from fedsim.learning.executors.contracts import EvaluationJob, Executor, TrainingSetup
from fedsim.learning.lineage.asked import Model, digest_of
from fedsim.learning.lineage.behaviour import behaviour_of_metrics
from fedsim.learning.lineage.computed import Computation
from fedsim.learning.lineage.verification import Verification
from fedsim.learning.models.layout import ModelLayout
from fedsim.learning.tasks.of_labels import Classification
from fedsim.learning.torch_modes import own_modes
from fedsim.streams import Streams

Found = Sequence[Evaluation]

_MOST_UNDER_WAY: Final = 2
"""Calls that may wait or run, each with its models in memory."""


class Running:
    """A call of the executor that runs beside the trainings."""

    def __init__(self, future: Future[Found], then: Callable[[Found], None]) -> None:
        self._future, self._then = future, then
        self._told = False

    def done(self) -> bool:
        return self._future.done()

    def wait(self) -> None:
        """Wait for the end of the call; `results` raises its error."""
        if self._future.exception() is None:
            self.results()

    def results(self) -> Found:
        """Return the results, or raise the call's error; waits if need be."""
        found = self._future.result()
        if not self._told:
            self._told = True
            self._then(found)
        return found

    def result(self) -> Evaluation:
        (found,) = self.results()
        return found


class Later:
    """The evaluation of a model that is not computed yet, so that trainings of several models run together."""

    def __init__(self, begin: Callable[[], None]) -> None:
        self._begin = begin
        self.running: Running | None = None

    def done(self) -> bool:
        return self.running is not None and self.running.done()

    def result(self) -> Evaluation:
        """Return the evaluation; the model is computed first if need be."""
        if self.running is None:
            self._begin()
        if self.running is None:
            raise RuntimeError("an evaluation has not begun")
        return self.running.result()


class Evaluator:
    """Evaluates jobs by the executor, one call at a time."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self._pool: ThreadPoolExecutor | None = None
        self._under_way: deque[Running] = deque()

    def start(self, jobs: Sequence[EvaluationJob], then: Callable[[Found], None]) -> Running:
        """Begin to evaluate jobs; never waits, as the executor may train meanwhile and wait for its reader."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="evaluation")
        try:
            running = Running(self._pool.submit(self._evaluate, jobs), then)
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
        """Wait until at most a number of calls are under way."""
        while len(self._under_way) > most:
            self._under_way.popleft().wait()


_GROUP: Final = 32
"""Most trainings that wait for a model's evaluation: with asynchronous servers those of many models run together."""

_GROUP_BYTES: Final = 2**28
"""Bytes of models that may wait for their evaluation."""


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
        self._later: dict[Model, Later] = {}
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
            self._verification.of_evaluation(model, known, lambda: self._run([EvaluationJob(model.vector)])[0])
            model.evaluation = KnownEvaluation(known)
            return model.evaluation
        later = model.evaluation = self._later[model] = Later(self.begin)
        # Without stale updates no training can run beside those of the next model, so that to wait gains nothing.
        if not model.stale or model.trainings >= self._most:
            self.begin()
        return later

    def begin(self) -> None:
        """Compute the models whose evaluation is to begin, and begin it."""
        models = list(self._later)
        for model in models:
            if model.known:
                self._evaluate(model)
        self.computation.compute(models)
        for model in models:  # those that the store had
            self._evaluate(model)
        self._evaluator.settle()

    def flush(self) -> None:
        """Put into the store what waits, and the results of evaluations under way."""
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
            found = self._run(jobs)
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
        (whole,) = self._run([EvaluationJob(model, np.concatenate(parts), sizes)])
        found = whole.parts or self._run([EvaluationJob(model, part) for part in parts])
        self._put(list(clients))(found)
        return found

    def digest(self, model: str, client: int, samples: int | None = None, round_: int = 0) -> str:
        """Return the digest of a model's score on a client's data, or on a mini-batch of it."""
        batch = None if samples is None else self._streams.digest("probe", client, round_)
        return digest_of("score", self._basis, model, self._shards[client], samples, batch, *self._judged)

    def local_digest(self, model: str, rows: str) -> str:
        """Return the digest of a model's score on local test samples, by the digest of their rows."""
        return digest_of("local", self._basis, model, rows, *self._judged)

    def _evaluation_digest(self, model: Model) -> str:
        return digest_of("evaluation", self._basis, model.digest, *self._judged)

    def _evaluate(self, model: Model) -> None:
        """Begin the evaluation that is asked of a model, as soon as its numbers are there."""
        later = self._later.pop(model, None)
        if later is not None:
            self.evaluated += 1
            later.running = self._evaluator.start(
                [EvaluationJob(model.vector)], self._put([self._evaluation_digest(model)])
            )

    def _run(self, jobs: Sequence[EvaluationJob]) -> Found:
        return self._evaluator.run(jobs)

    def _part(self, client: int, samples: int | None, round_: int) -> IntArray:
        rows = self._rows[client]
        if samples is None:
            return rows
        return rows[self._streams.generator("probe", client, round_).permutation(rows.size)[:samples]]

    def _put(self, digests: Sequence[str]) -> Callable[[Found], None]:
        """Return what puts the evaluations under these digests where they are known."""

        def put(found: Sequence[Evaluation]) -> None:
            record = self.scores.record
            self._known.put_records({digest: record(one) for digest, one in zip(digests, found, strict=True)})

        return put
