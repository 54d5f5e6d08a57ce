"""The executor "processes": this process and workers of one thread each, which give the bits of the sequential one."""

import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Final

import numpy as np

from fedsim.arrays import FloatArray, Vector
from fedsim.errors import FedsimError, PartError
from fedsim.foreign import Foreign
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.alone import checked_print
from fedsim.learning.executors.chunks import Chunk, evaluated
from fedsim.learning.executors.contracts import (
    SEQUENTIAL,
    EvaluationJob,
    TrainingJob,
    TrainingResult,
    TrainingSetup,
    check_cpu,
    fingerprint_with,
    most_trainings,
)
from fedsim.learning.executors.cores import worker_count
from fedsim.learning.executors.faults import named_faults
from fedsim.learning.executors.trainer import Trainer, one_thread
from fedsim.learning.executors.workers import pool, worker
from fedsim.learning.executors.workers.portable import by_value, from_bytes
from fedsim.learning.executors.workers.segments import Segment

_SHARES: Final = 3
"""Part of a process's share of what is left that one message has, so that all end at about the same time."""

_NUMBERS = itertools.count()
_DATA: dict[int, Segment] = {}


class ProcessesExecutor:
    """Trains clients in this process and in workers, which are started once and serve all runs of this process.

    The bits are those of the sequential executor, whatever the number of processes. The data set and models lie in
    shared memory. Calls may come from several threads.

    Parameters
    ----------
    setup : TrainingSetup
    device : ``"cpu"``

    Attributes
    ----------
    fingerprint : `SEQUENTIAL`, or ``"sequential-bfloat16"`` with that precision
    max_batch : as many trainings as have results of 1 GiB, at least 32 and at most 256
    workers : how many processes take part

    Raises
    ------
    FedsimError
        If another device is asked for, or the model cannot be sent.
    """

    fingerprint: str = SEQUENTIAL
    max_batch: int = 256

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        check_cpu("processes", device)
        self.fingerprint = fingerprint_with(setup, self.fingerprint)
        self.workers, self._run = worker_count(), setup
        self._test_samples, self._made_of = len(setup.data.test_y), setup.scores
        with one_thread(setup), named_faults(setup):
            self._trainer = Trainer(setup)
            self._segment, self._setup = _sent(setup, checked_print(self._trainer))
        self.max_batch = most_trainings(setup, self._trainer.flat.layout)
        self._training = threading.Lock()

    def train(self, jobs: Sequence[TrainingJob]) -> list[TrainingResult]:
        """Return what each client learns; this process takes jobs too, from the short end."""
        if not jobs:
            return []
        models = {id(job.base): job.base for job in jobs}
        places, segment = dict(zip(models, range(len(models)), strict=True)), self._shared(list(models.values()))
        samples = self._run.local.work_samples([job.rows.size for job in jobs], [job.work for job in jobs])
        # A job's fixed part is about that of a batch.
        costs = (samples + self._run.local.batch_size).tolist()

        def message(indices: Sequence[int]) -> worker.Trainings:
            some = [jobs[i] for i in indices]
            bases = [places[id(job.base)] for job in some]
            return worker.Trainings(self._setup, [job._replace(base=_EMPTY) for job in some], bases, segment.shared)

        def own(index: int) -> TrainingResult:
            with named_faults(self._run, index):
                return self._trainer.train(jobs[index])

        with self._training, self._trainer.turn():
            found: list[TrainingResult] = _Call(costs, self.workers, worker.train, message, own).results()
        for result in found:
            result.difference.flags.writeable = False
        return found

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> list[Evaluation]:
        return evaluated(jobs, self._test_samples, self._made_of, self._scores)

    def _scores(self, chunks: Sequence[Chunk]) -> list[FloatArray]:
        models = {id(chunk.model): chunk.model for chunk in chunks}
        places, segment = dict(zip(models, range(len(models)), strict=True)), self._shared(list(models.values()))

        def message(indices: Sequence[int]) -> worker.Scores:
            some = [chunks[i] for i in indices]
            shown = [(chunk.start, chunk.stop, chunk.each) for chunk in some]
            owners = [places[id(chunk.model)] for chunk in some]
            return worker.Scores(self._setup, [chunk.rows for chunk in some], shown, owners, segment.shared)

        def own(index: int) -> FloatArray:
            with named_faults(self._run):
                return self._trainer.score(chunks[index])

        with self._trainer.turn():
            return _Call([float(chunk.size) for chunk in chunks], self.workers, worker.score, message, own).results()

    def _shared(self, models: Sequence[Vector]) -> Segment:
        return Segment(models if self.workers > 1 else ())


_EMPTY: Final = np.empty(0, dtype=np.float32)


class _Call:
    """Jobs of one call: workers get shares of them, the longest first, and this process takes one after the other."""

    def __init__(
        self,
        costs: Sequence[float],
        workers: int,
        task: Callable[..., Any],
        message: Callable[[Sequence[int]], Any],
        own: Callable[[int], Any],
    ) -> None:
        self._costs, self._workers, self._task, self._message, self._own = costs, workers, task, message, own
        self._waiting = deque(sorted(range(len(costs)), key=lambda i: -costs[i]))
        self._left, self._found = float(sum(costs)), dict[int, Any]()
        self._changed, self._under_way = threading.Condition(), 0
        self._error: BaseException | None = None

    def results(self) -> list[Any]:
        try:
            if self._workers > 1:
                for _ in range(self._workers - 1):
                    self._send()
            while (index := self._taken()) is not None:
                self._found[index] = self._own(index)
            with self._changed:
                self._changed.wait_for(lambda: not self._under_way or self._error is not None)
            if self._error is not None:
                raise self._error
        except BrokenProcessPool as error:
            raise pool.lost(error) from None
        except BaseException as error:
            self._waiting.clear()
            if not isinstance(error, Exception):
                pool.end()
            raise
        return [self._found[i] for i in range(len(self._costs))]

    def _taken(self) -> int | None:
        with self._changed:
            if not self._waiting or self._error is not None:
                return None
            index = self._waiting.pop()
            self._left -= self._costs[index]
            return index

    def _send(self) -> None:
        """Give the pool the next share, if there is one."""
        with self._changed:
            most, cost, share = self._left / (_SHARES * self._workers), 0.0, list[int]()
            while self._waiting and self._error is None and (not share or cost + self._costs[self._waiting[0]] <= most):
                share.append(self._waiting.popleft())
                cost += self._costs[share[-1]]
            self._left -= cost
            self._under_way += bool(share)
        if share:
            try:
                future = pool.pool(self._workers - 1).submit(self._task, self._message(share))
            except BaseException:
                with self._changed:
                    self._under_way -= 1
                raise
            future.add_done_callback(lambda done: self._take(share, done))

    def _take(self, share: Sequence[int], done: Future[Any]) -> None:
        try:
            found = done.result()
            if isinstance(found, bytes):
                error = from_bytes(found)
                if isinstance(error, PartError) and error.at is not None:
                    error.at = share[error.at]
                raise error
            self._found.update(zip(share, found, strict=True))
            self._send()
        except BaseException as error:
            self._error = self._error or error
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()


def _sent(setup: TrainingSetup, wanted: str) -> tuple[list[Segment], worker.SetupMessage]:
    """Return a setup for workers and what holds its memory; its data are shared by all setups that have them."""
    data = setup.data
    facts = (data.classes, data.pixel_max, data.vocabulary, data.token_fill)
    settings = (setup.model, setup.local, setup.seed, setup.precision, setup.fast, setup.algorithm, setup.task)
    try:
        content = by_value(
            (settings, facts, wanted),
            *(type(setup.algorithm), type(setup.task), *map(type, setup.task.metrics)),
            *(type(setup.model), *(setup.model.codes() if isinstance(setup.model, Foreign) else ())),
        )
    except Exception as error:
        kind = type(setup.model)
        raise FedsimError(
            f"learning.model: {kind.__module__}.{kind.__qualname__} cannot be sent to worker processes ({error}); "
            f"allowed with the executor 'processes': a class at the top of a module, with settings that can be "
            f"pickled, and such a learning.algorithm and learning.task; or choose the executor 'sequential'"
        ) from error
    if id(data) not in _DATA:
        more = [] if data.vectors is None else [data.vectors]
        _DATA[id(data)] = Segment([data.train_x, data.train_y, data.test_x, data.test_y, *more])
        weakref.finalize(data, _DATA.pop, id(data), None)
    own = Segment([np.frombuffer(content, dtype=np.uint8)])
    held = [own, _DATA[id(data)]]
    return held, worker.SetupMessage(next(_NUMBERS), own.shared, held[1].shared)
