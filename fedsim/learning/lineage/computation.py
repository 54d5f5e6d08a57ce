"""Where handles become numbers: looked up in the store, or computed by the executor in batches."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from fedsim.arrays import IntArray, Vector
from fedsim.identity import identity
from fedsim.learning.computing import Work
from fedsim.learning.evaluation import Evaluation, KnownEvaluation, PendingEvaluation
from fedsim.learning.executors.contracts import (
    SEQUENTIAL,
    EvaluationJob,
    Executor,
    TrainingSetup,
)
from fedsim.learning.lineage.behaviour import behaviour_of_metrics, is_own, name_of
from fedsim.learning.lineage.digests import digest_of
from fedsim.learning.lineage.evaluations import Evaluator, Found, Running, Waiting
from fedsim.learning.lineage.handles import Cohort, ModelHandle, Node, StateHandle, Training
from fedsim.learning.lineage.keeping import Keeping
from fedsim.learning.lineage.kept import Kept
from fedsim.learning.lineage.local_work import LocalWork
from fedsim.learning.lineage.messages import Messages
from fedsim.learning.lineage.order import materialize
from fedsim.learning.lineage.runs import Heard, TrainingRuns
from fedsim.learning.lineage.verification import Verification, distrust, trusted
from fedsim.learning.models.layout import ModelLayout
from fedsim.learning.store.contracts import Record, Store
from fedsim.learning.tasks.of_labels import Classification
from fedsim.learning.torch_modes import own_modes
from fedsim.streams import Streams

ARITHMETIC: Final = 3
"""Version of fedsim's arithmetic in digests: one more whenever a change of the code changes a result's bits."""

_LONGEST_LINE: Final = 64
_FEW_WAITING: Final = 512
"""Models in a row without numbers, and trainings on their line, before the store is asked for each further model."""

_MOST_WAITING: Final = 2**18
"""Trainings on one line that may wait for their turn, in about 130 MB; more are run."""

_GROUP: Final = 32
"""Most trainings that wait for a model's evaluation: with asynchronous servers those of many models run together."""

_GROUP_BYTES: Final = 2**28
"""Bytes of models that may wait for their evaluation."""


class Computation:
    def __init__(
        self,
        layout: ModelLayout,
        executor: Executor,
        rows: Sequence[IntArray],
        setup: TrainingSetup,
        numerics: str,
        behaviour: str,
        streams: Streams,
        messages: Messages,
        store: Store,
        keeping: Keeping,
        local: LocalWork,
    ) -> None:
        self.layout = layout
        self.shards = [digest_of(part.tobytes()) for part in rows]
        other = () if executor.fingerprint == SEQUENTIAL else (executor.fingerprint,)
        basis = digest_of(ARITHMETIC, numerics, setup.data.digest, *other, *filter(None, (behaviour,)))
        self.basis = trusted(basis, store)
        self.scores, self._test_samples = setup.scores, len(setup.data.test_y)
        self.behaviour_of_metrics = behaviour_of_metrics(setup, layout)
        judged = identity(setup.task), *filter(None, (self.behaviour_of_metrics,))
        self._judged = () if setup.task == Classification() else judged
        self._rows, self._streams, self.messages = rows, streams, messages
        self.kept = Kept(store, keeping)
        self.runs = TrainingRuns(executor, rows, streams, messages, local, self.kept)
        own = [name_of(one) for one in (setup.model, setup.task, setup.algorithm) if is_own(one)]
        parts = ", ".join(own) or "machine or release"
        self.verification = Verification(self, executor.fingerprint, parts, lambda: distrust(basis, store))
        self._evaluator = Evaluator(executor)
        self._to_evaluate: dict[ModelHandle, Waiting] = {}
        self._in_use = 0
        self._evaluated = self._evaluations_found = self._probed = self._probes_found = 0

    @property
    def work(self) -> Work:
        """What has been computed so far; a training that has not run so far counts as found."""
        return Work(
            self.runs.trained,
            max(0, self._in_use - self.runs.trained),
            self._evaluated,
            self._evaluations_found,
            self._probed,
            self._probes_found,
        )

    def count(self, trainings: Sequence[Training]) -> None:
        """Count trainings whose updates are in use, each once."""
        if isinstance(trainings, Cohort) and not trainings.opened:
            new: Sequence[Training] = () if trainings.counted else trainings
            trainings.counted = True
        else:
            new = [training for training in trainings if not training.counted]
            for training in new:
                training.counted = True
        self._in_use += len(new)
        if new and not self.kept.alone:
            self.verification.of_trainings(new)

    def records(self, digests: Sequence[str]) -> dict[str, Record]:
        return self.kept.records(digests)

    def has_start(self, training: Training) -> bool:
        before = training.previous
        known = before is None or before.value is not None or self.kept.load_state(before)
        return known and self.has_numbers(training.base)

    def has_numbers(self, model: ModelHandle) -> bool:
        return model.materialized or self.kept.load(model)

    @own_modes()
    def train_again(self, training: Training) -> Record:
        return self.runs.again(training)

    def evaluate_again(self, model: ModelHandle) -> Evaluation:
        (found,) = self._evaluator.run([EvaluationJob(model.vector)])
        return found

    @own_modes()
    def materialize(self, wanted: Sequence[Node], heard: Heard | None = None) -> None:
        """Compute handles with all their ancestors."""
        for node in wanted if heard is not None else ():
            if isinstance(node, Training) and node.materialized and heard is not None:
                heard(node)
        self.runs.heard = heard
        try:
            materialize(wanted, self, self.runs.executor.max_batch)
        finally:
            self.runs.heard = None
        self.verification.run_pending()

    def look_up(self, node: Node) -> bool:
        """Load a model's numbers, or the state before a training, from the store; return whether it has them."""
        if isinstance(node, ModelHandle):
            return self.kept.load(node)
        if node.previous is not None and node.previous.value is None:
            self.kept.load_state(node.previous)
        return False

    def run(self, trainings: Sequence[Training]) -> Iterator[Sequence[Training]]:
        return self.runs.run(trainings)

    def add_up(self, model: ModelHandle, cohort: Cohort) -> None:
        """Run the trainings of a cohort that alone makes a model, and add each to it as soon as it has run."""
        model.add(self.runs.differences(cohort))

    def combine(self, model: ModelHandle) -> None:
        model.materialize()
        self.kept.put_if_due(model)
        self._evaluate(model)

    def shorten(self, model: ModelHandle, states: Iterable[StateHandle]) -> None:
        """Keep a line of models without numbers short: load those that are stored; run a very long one."""
        if model.depth <= _LONGEST_LINE or model.waiting <= _FEW_WAITING:
            return
        if self.kept.load(model):
            for state in states:
                if state.value is None:
                    self.kept.load_state(state)
        elif model.waiting > _MOST_WAITING:
            self.materialize([model])

    def vector(self, model: ModelHandle) -> Vector:
        """Return the numbers of a model, parameters first and then buffers, shape (d,)."""
        self.materialize([model])
        return model.vector

    def start_evaluation(self, model: ModelHandle) -> PendingEvaluation:
        """Look up the evaluation of a model on the test set, or begin it."""
        if model.evaluation is not None:
            return model.evaluation
        digest = self._evaluation_digest(model)
        found = self.kept.records([digest]).get(digest)
        if found is not None:
            self._evaluations_found += 1
            known = self.scores.of_record(found, self._test_samples)
            if not self.kept.alone:
                self.verification.of_evaluation(model, known)
            model.evaluation = KnownEvaluation(known)
            return model.evaluation
        waiting = model.evaluation = self._to_evaluate[model] = Waiting(self.begin_evaluations)
        # Without stale updates no training can run beside those of the next model, so that to wait gains nothing.
        most = min(_GROUP, _GROUP_BYTES // self.layout.initial.nbytes)
        if not model.stale or model.materialized or model.waiting >= most:
            self.begin_evaluations()
        return waiting

    def begin_evaluations(self) -> None:
        """Compute the models that wait for their evaluation, and begin it."""
        models = list(self._to_evaluate)
        for model in models:
            if model.materialized:
                self._evaluate(model)
        self.materialize(models)
        for model in models:  # those that the store had
            self._evaluate(model)
        self._evaluator.settle()

    def flush(self) -> None:
        """Put into the store what waits, and the results of evaluations under way."""
        self._evaluator.settle(0)
        self.kept.flush()

    def reports(self, trainings: Sequence[Training], records: Mapping[str, Record]) -> None:
        """Give trainings the reports that are among records under their digests."""
        for training in trainings:
            if training.report is None and (found := records.get(training.work_digest)) is not None:
                training.report = found

    def probe_losses(self, model: ModelHandle, client: Sequence[int], samples: int | None, round_: int) -> list[float]:
        """Return the mean loss of a model on clients' data, or on a mini-batch of it; looked up where it is stored."""
        most = [samples if samples is not None and samples < self._rows[one].size else None for one in client]
        digests = [self.score_digest(model.digest, one, count, round_) for one, count in zip(client, most, strict=True)]
        losses = {digest: record["loss"] for digest, record in self.kept.records(digests).items()}
        parts = dict(zip(digests, zip(client, most, strict=True), strict=True))
        new = [digest for digest in parts if digest not in losses]
        self._probes_found += len(losses)
        if new:
            vector = self.vector(model)
            jobs = [EvaluationJob(vector, self._part(*parts[digest], round_)) for digest in new]
            self._probed += len(new)
            found = self._evaluator.run(jobs)
            self._keep_evaluations(new)(found)
            losses |= {digest: one.loss for digest, one in zip(new, found, strict=True)}
        return [losses[digest] for digest in digests]

    def start_scores(self, scores: Mapping[str, tuple[Vector, int]], rows: Sequence[IntArray] | None = None) -> Running:
        """Begin to evaluate models on rows of clients, by default all that they train on, beside trainings."""
        self._probed += len(scores)
        of = self._rows if rows is None else rows
        jobs = [EvaluationJob(model, of[client]) for model, client in scores.values()]
        return self._evaluator.start(jobs, self._keep_evaluations(list(scores)))

    def score_together(self, model: Vector, scores: Mapping[str, int], rows: Sequence[IntArray]) -> list[Evaluation]:
        """Evaluate one model on rows of several clients in common batches, where the executor can."""
        self._probed += len(scores)
        parts = [rows[client] for client in scores.values()]
        sizes = np.array([part.size for part in parts], dtype=np.int64)
        (whole,) = self._evaluator.run([EvaluationJob(model, np.concatenate(parts), sizes)])
        found = list(whole.parts or self._evaluator.run([EvaluationJob(model, part) for part in parts]))
        self._keep_evaluations(list(scores))(found)
        return found

    def score_digest(self, model: str, client: int, samples: int | None = None, round_: int = 0) -> str:
        """Return the digest of a model's score on a client's data, or on a mini-batch of it."""
        batch = None if samples is None else self._streams.digest("probe", client, round_)
        return digest_of("score", self.basis, model, self.shards[client], samples, batch, *self._judged)

    def local_digest(self, model: str, rows: str) -> str:
        """Return the digest of a model's score on local test samples, by the digest of their rows."""
        return digest_of("local", self.basis, model, rows, *self._judged)

    def found_probes(self, count: int) -> None:
        self._probes_found += count

    def _evaluation_digest(self, model: ModelHandle) -> str:
        return digest_of("evaluation", self.basis, model.digest, *self._judged)

    def _evaluate(self, model: ModelHandle) -> None:
        """Begin the evaluation of a model that waits for it, as soon as its numbers are there."""
        waiting = self._to_evaluate.pop(model, None)
        if waiting is not None:
            self._evaluated += 1
            keep = self._keep_evaluations([self._evaluation_digest(model)])
            waiting.running = self._evaluator.start([EvaluationJob(model.vector)], keep)

    def _part(self, client: int, samples: int | None, round_: int) -> IntArray:
        rows = self._rows[client]
        if samples is None:
            return rows
        return rows[self._streams.generator("probe", client, round_).permutation(rows.size)[:samples]]

    def _keep_evaluations(self, digests: Sequence[str]) -> Callable[[Found], None]:
        def keep(found: Found) -> None:
            scores = self.scores
            self.kept.put_records({digest: scores.record(one) for digest, one in zip(digests, found, strict=True)})

        return keep
