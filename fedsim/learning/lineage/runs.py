"""Trainings that can run now, as jobs for the executor, and the use of their results."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from fedsim.arrays import IntArray, Vector
from fedsim.errors import PartError
from fedsim.learning.drawn_samples import SampleDraws
from fedsim.learning.executors.contracts import Executor, OptimizerState, TrainingJob, TrainingResult
from fedsim.learning.lineage.faults import name_fault, named_faults, of_training
from fedsim.learning.lineage.handles import STEPS, Cohort, Training
from fedsim.learning.lineage.kept import Kept
from fedsim.learning.lineage.local_work import LocalWork
from fedsim.learning.lineage.messages import Messages
from fedsim.learning.lineage.verification import PRINT, print_of
from fedsim.learning.store.contracts import Record
from fedsim.streams import Streams

_NOTHING: Final[OptimizerState] = {}

Heard = Callable[[Training], None]
"""Called with each training whose difference is in memory, before any model has taken it."""


class TrainingRuns:
    def __init__(
        self,
        executor: Executor,
        rows: Sequence[IntArray],
        streams: Streams,
        messages: Messages,
        local: LocalWork,
        kept: Kept,
    ) -> None:
        self.executor = executor
        self.trained = 0
        self.heard: Heard | None = None
        self._rows, self._messages, self._local, self._kept = rows, messages, local, kept
        self._draws = SampleDraws(streams, np.array([part.size for part in rows], dtype=np.int64))
        self._generators = streams.pool("training")

    def differences(self, cohort: Cohort) -> Iterator[Vector]:
        """Run the trainings of a cohort; yield the difference of each, shape (d,), in their order."""
        vector, version, rows, most = cohort.base.vector, cohort.base.version, self._rows, self.executor.max_batch
        reports: list[Record] = []
        for first in range(0, len(cohort), most):
            part = slice(first, first + most)
            clients = cohort.clients[part]
            generators = self._generators.generators([(one, version) for one in clients])
            jobs = [
                TrainingJob(vector, rows[one], share, rng)
                for one, share, rng in zip(clients, cohort.work[part], generators, strict=True)
            ]
            try:
                for _, result in zip(jobs, self.executor.train(jobs), strict=True):
                    reports.append(self._report(result))
                    yield result.difference
            except PartError as fault:
                name_fault(fault, cohort[part])
                raise
            self.trained += len(jobs)
            self._kept.put_reports(cohort.digests, part, reports[part])
        cohort.reports = reports

    def run(self, trainings: Sequence[Training]) -> Iterator[Sequence[Training]]:
        """Run trainings, each digest once, and yield together those whose results come together."""
        if idle := _without_samples(trainings):
            for training in idle:
                self._give(training, _nothing(training), _NOTHING)
            trainings = [training for training in trainings if not training.materialized]
            yield idle
            if not trainings:
                return
        alike = {training.work_digest: [training] for training in trainings}
        if len(alike) < len(trainings):
            for same in alike.values():
                same.clear()
            for training in trainings:
                alike[training.work_digest].append(training)
        jobs = [same[0] for same in alike.values()]
        reports: dict[str, Record] = {}
        with named_faults(jobs):
            results = self.executor.train(self._jobs(jobs))
            together = isinstance(results, list)
            for (digest, same), result in zip(alike.items(), results, strict=True):
                with of_training(same[0]):
                    reports[digest] = self._take(same, result)
                if not together:
                    yield same
            if together:
                yield trainings
        self._kept.put_records(reports)

    def again(self, training: Training) -> Record:
        """Run a training that has run before, and return its report; nothing is given to the training."""
        with named_faults([training]):
            (result,) = self.executor.train(self._jobs([training]))
        with of_training(training):
            return self._report(self._sent(training, result)[0])

    def _report(self, result: TrainingResult) -> Record:
        report = {"loss": result.loss, "loss_rms": result.loss_rms}
        return report if self._kept.alone else {**report, PRINT: print_of(result.difference)}

    def _sent(self, training: Training, result: TrainingResult) -> tuple[TrainingResult, OptimizerState]:
        """Return a result as the local algorithm leaves it, and the client's state of the algorithm."""
        own = _NOTHING
        if not self._local.plain:
            difference, own = self._local.left(training, result.difference)
            result = result._replace(difference=difference)
        return _scaled(training, result), own

    def _take(self, alike: Sequence[Training], result: TrainingResult) -> Record:
        """Give trainings of one digest, of which the first has run, their result; return their report."""
        self.trained += 1
        first = alike[0]
        result, own = self._sent(first, result)
        report = self._give(first, result, own)
        for training in alike[1:]:
            self._give(training, result, own)
        return report

    def _give(self, training: Training, result: TrainingResult, own: OptimizerState) -> Record:
        """Give a training its result, with the state of its local algorithm; return its report."""
        report = self._report(result)
        training.difference, training.report = result.difference, report
        if training.outgoing is not None:
            own = {**own, **self._messages.settle(training, result.difference)}
        if training.state is not None:
            training.state.take({**result.state, **own} if own else result.state)
            self._kept.note_state(training)
        if self.heard is not None:
            self.heard(training)
        return report

    def _jobs(self, trainings: Sequence[Training]) -> list[TrainingJob]:
        """Return the jobs of trainings, whose generators serve until the next call."""
        generators = self._generators.generators(
            [
                (one.client, one.base.version, one.repeat) if one.repeat else (one.client, one.base.version)
                for one in trainings
            ]
        )
        rows, jobs = _rows_of(trainings, self._rows, self._draws), []
        if not self._local.plain:
            for one, rng, start, mine in zip(trainings, generators, self._local.starts(trainings), rows, strict=True):
                model, offset, anchors = start
                state, rates = one.optimizer_state, self._local.rates(one)
                jobs.append(TrainingJob(model, mine, one.work, rng, state, offset, dict(anchors), rates))
            return jobs
        base = vector = None
        for one, rng, mine in zip(trainings, generators, rows, strict=True):
            if base is not one.base or vector is None:
                base = one.base
                vector = base.vector
            state = {} if one.previous is None else one.optimizer_state
            jobs.append(TrainingJob(vector, mine, one.work, rng, state))
        return jobs


def _rows_of(trainings: Sequence[Training], rows: Sequence[IntArray], draws: SampleDraws) -> list[IntArray]:
    """Return the samples of each training: its client's, or those that the client has drawn among them."""
    found = [rows[one.client] for one in trainings]
    together: dict[tuple[float, int], list[int]] = {}
    for i, one in enumerate(trainings):
        if one.draw is not None:
            together.setdefault((one.draw.probability, one.draw.number), []).append(i)
    for (probability, number), places in together.items():
        client = np.array([trainings[i].client for i in places])
        for i, drawn in zip(places, draws.places(client, probability, number), strict=True):
            found[i] = found[i][drawn]
    return found


def _without_samples(trainings: Sequence[Training]) -> list[Training]:
    return [training for training in trainings if training.draw is not None and not training.draw.taken]


def _nothing(training: Training) -> TrainingResult:
    """Return the result of a training without samples, which leaves the client's state as it was."""
    zero = np.zeros_like(training.base.vector)
    zero.flags.writeable = False
    before = {} if training.previous is None else training.previous.value or {}
    kept = {name: values for name, values in before.items() if not name.startswith(STEPS)}
    return TrainingResult(zero, math.nan, math.nan, kept)


def _scaled(training: Training, result: TrainingResult) -> TrainingResult:
    """Return a result with the difference that the client sends."""
    if training.draw is None or training.draw.scale == 1.0:
        return result
    difference = result.difference * np.float32(training.draw.scale)
    difference.flags.writeable = False
    return result._replace(difference=difference)
