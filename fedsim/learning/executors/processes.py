"""The executor "processes": worker processes of one thread each, which give the bits of the sequential executor."""

import itertools
import os
import sys
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, Vector
from fedsim.errors import FedsimError
from fedsim.foreign import Foreign
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.chunks import Chunk, evaluated
from fedsim.learning.executors.contracts import (
    SEQUENTIAL,
    EvaluationJob,
    TrainingJob,
    TrainingResult,
    TrainingSetup,
    check_cpu,
    fingerprint_with,
)
from fedsim.learning.executors.workers.calls import Call, Rate, Setup
from fedsim.learning.executors.workers.channel import by_value, module_path
from fedsim.learning.executors.workers.messages import Scores, SetupMessage, SharedArray, SharedData, Trainings
from fedsim.learning.executors.workers.pool import pool
from fedsim.learning.executors.workers.segments import Segment, raw

ENVIRONMENT_VARIABLE: Final = "FEDSIM_WORKERS"
"""Number of workers; by default one for each core that this process may use."""

_WINDOW_BYTES: Final = 1 << 26
"""Memory of results that wait for their turn; two for each worker in any case."""

_NUMBERS = itertools.count()
_DATA: dict[int, tuple[Segment, SharedData]] = {}


class ProcessesExecutor:
    """Trains clients in worker processes, which are started once and serve all runs of this process.

    The bits are those of the sequential executor, whatever the number of workers. The data set and models that several
    jobs start from lie in shared memory. Calls may come from several threads; trainings go before evaluations.

    Parameters
    ----------
    setup : TrainingSetup
    device : ``"cpu"``

    Attributes
    ----------
    fingerprint : `SEQUENTIAL`, or ``"sequential-bfloat16"`` with that precision
    max_batch : 256
    workers : how many processes take part

    Raises
    ------
    FedsimError
        If another device is asked for, the system has no sockets that pass memory on, or the model cannot be sent.
    """

    fingerprint: str = SEQUENTIAL
    max_batch: int = 256

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        check_cpu("processes", device)
        if sys.platform == "win32":
            raise FedsimError("executor: 'processes' is not allowed on Windows; allowed here: 'sequential'")
        self.fingerprint = fingerprint_with(setup.precision, self.fingerprint)
        self.workers = worker_count()
        self._local, self._test_samples, self._made_of = setup.local, len(setup.data.test_y), setup.scores
        self._setup = _sent(setup)
        self._training, self._scoring = Rate(), Rate()

    def train(self, jobs: Sequence[TrainingJob]) -> Iterator[TrainingResult]:
        call = _TrainCall(self._setup, jobs, self._costs(jobs), self._training, self.workers, self._window(jobs))
        return pool().results(call)

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> list[Evaluation]:
        return evaluated(jobs, self._test_samples, self._made_of, self._scores)

    def _scores(self, chunks: Sequence[Chunk]) -> list[FloatArray]:
        call = _ScoreCall(self._setup, chunks, self._scoring, self.workers)
        return list(pool().results(call))

    def _costs(self, jobs: Sequence[TrainingJob]) -> list[float]:
        """Return what jobs cost, in samples; a job's fixed part is about that of a batch."""
        samples = self._local.work_samples([job.rows.size for job in jobs], [job.work for job in jobs])
        return [float(cost) for cost in samples + self._local.batch_size]

    def _window(self, jobs: Sequence[TrainingJob]) -> int:
        """Return how many results may wait for their turn."""
        arrays = 3 if self._local.keep_optimizer_state else 1
        largest = max((1, *(job.base.nbytes for job in jobs)))
        return max(2 * self.workers, _WINDOW_BYTES // (arrays * largest))


class _TrainCall(Call):
    """Trainings; models that several of them start from are shared."""

    def __init__(
        self, setup: Setup, jobs: Sequence[TrainingJob], costs: list[float], rate: Rate, workers: int, window: int
    ) -> None:
        common = _Shared([job.base for job in jobs], at_least=2)
        super().__init__(setup, costs, rate, workers=workers, window=window, segments=common.segments, urgency=1)
        self._jobs, self._common = list(jobs), common

    def work(self, indices: Sequence[int]) -> Trainings:
        bases = [self._common.places.get(id(self._jobs[i].base)) for i in indices]
        jobs = [self._jobs[i] for i in indices]
        empty = np.empty(0, dtype=np.float32)
        return Trainings(
            [job if base is None else job._replace(base=empty) for job, base in zip(jobs, bases, strict=True)], bases
        )


class _ScoreCall(Call):
    """Chunks to score; all models are shared."""

    def __init__(self, setup: Setup, chunks: Sequence[Chunk], rate: Rate, workers: int) -> None:
        common = _Shared([chunk.model for chunk in chunks], at_least=1)
        costs = [float(chunk.size) for chunk in chunks]
        super().__init__(setup, costs, rate, workers=workers, window=len(chunks), segments=common.segments, urgency=0)
        self._chunks, self._common = chunks, common

    def work(self, indices: Sequence[int]) -> Scores:
        chosen = [self._chunks[i] for i in indices]
        return Scores(
            models=[self._common.places[id(chunk.model)] for chunk in chosen],
            rows=[chunk.rows for chunk in chosen],
            places=[(chunk.start, chunk.stop, chunk.each) for chunk in chosen],
        )


class _Shared:
    """Models in shared memory, each once."""

    def __init__(self, models: Sequence[Vector], at_least: int) -> None:
        counts = Counter(id(model) for model in models)
        chosen = {id(model): model for model in models if counts[id(model)] >= at_least}
        self.segments: list[Segment] = []
        self.places: dict[int, SharedArray] = {}
        if chosen:
            segment, shared = _share(list(chosen.values()))
            self.segments.append(segment)
            self.places = dict(zip(chosen, shared, strict=True))


def worker_count() -> int:
    asked = os.environ.get(ENVIRONMENT_VARIABLE)
    if not asked:
        return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    if not asked.isdecimal() or int(asked) < 1:
        raise FedsimError(f"{ENVIRONMENT_VARIABLE}: {asked!r} is not allowed; it must be a whole number, at least 1")
    return int(asked)


def _sent(setup: TrainingSetup) -> Setup:
    """Return a setup for workers; its data are shared by all setups that have them."""
    segment, data = _shared_data(setup.data)
    try:
        settings = by_value(
            (setup.model, setup.local, setup.seed, setup.precision, setup.algorithm, setup.task),
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
    return Setup(SetupMessage(next(_NUMBERS), module_path(), settings, data), segment)


def _shared_data(data: Dataset) -> tuple[Segment, SharedData]:
    if id(data) not in _DATA:
        vectors = [] if data.vectors is None else [data.vectors]
        segment, arrays = _share([data.train_x, data.train_y, data.test_x, data.test_y, *vectors])
        _DATA[id(data)] = segment, SharedData(arrays, data.classes, data.pixel_max, data.vocabulary, data.token_fill)
        weakref.finalize(data, _DATA.pop, id(data), None)
    return _DATA[id(data)]


def _share(arrays: Sequence[NDArray[Any]]) -> tuple[Segment, list[SharedArray]]:
    """Copy arrays into a new segment; return it with their places."""
    segment, places = Segment.holding([raw(array) for array in arrays])
    return segment, [
        SharedArray(segment.number, place, array.shape, array.dtype.str)
        for array, place in zip(arrays, places, strict=True)
    ]
