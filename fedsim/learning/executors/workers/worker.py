"""What a worker process does: it computes messages on one thread, until its parent is gone."""

import ctypes
import multiprocessing.connection
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.executors.alone import check_same
from fedsim.learning.executors.chunks import Chunk
from fedsim.learning.executors.contracts import TrainingJob, TrainingResult, TrainingSetup
from fedsim.learning.executors.faults import named_faults
from fedsim.learning.executors.trainer import Trainer
from fedsim.learning.executors.workers.portable import from_bytes, portable
from fedsim.learning.executors.workers.segments import Shared

_MOST_SETUPS: Final = 4
_TRAINERS: Final[dict[int, Trainer]] = {}

Failed = bytes
"""An error of a worker, by value."""


@dataclass(frozen=True)
class SetupMessage:
    """What a trainer is made of: the number of the setup, and in shared memory its settings and the data set."""

    number: int
    settings: Shared
    data: Shared


@dataclass(frozen=True)
class Trainings:
    setup: SetupMessage
    jobs: list[TrainingJob]
    bases: list[int]
    models: Shared


@dataclass(frozen=True)
class Scores:
    setup: SetupMessage
    rows: list[IntArray | None]
    places: list[tuple[int, int, bool]]
    owners: list[int]
    models: Shared


def begin(path: Sequence[str]) -> None:
    """Prepare a fresh process, which ends with its parent, in the middle of a training too."""
    sys.path[:] = path
    torch.set_num_threads(1)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def watch() -> None:
            multiprocessing.connection.wait([parent.sentinel])
            os._exit(0)

        threading.Thread(target=watch, daemon=True).start()
    if sys.platform == "linux":
        os.setsid()  # so that Ctrl-C reaches the run only
        # Activations of some megabytes are freed and asked for again in each batch; glibc would give them to the
        # system and get pages back that it has to clear.
        libc = ctypes.CDLL(None)
        for option, value in ((-3, 1 << 28), (-1, 1 << 28), (-2, 1 << 24)):
            libc.mallopt(option, value)


def train(work: Trainings) -> list[TrainingResult] | Failed:
    try:
        trainer, models = _trainer(work.setup), work.models.arrays()
        found = []
        for place, (job, base) in enumerate(zip(work.jobs, work.bases, strict=True)):
            with named_faults(trainer.setup, place):
                found.append(trainer.train(job._replace(base=models[base])))
    except Exception as error:
        return portable(error)
    return found


def score(work: Scores) -> list[FloatArray] | Failed:
    try:
        trainer, models = _trainer(work.setup), work.models.arrays()
        asked = zip(work.owners, work.rows, work.places, strict=True)
        with named_faults(trainer.setup):
            return [trainer.score(Chunk(models[owner], rows, *place)) for owner, rows, place in asked]
    except Exception as error:
        return portable(error)


def _trainer(message: SetupMessage) -> Trainer:
    if message.number not in _TRAINERS:
        (content,) = message.settings.arrays()
        settings, facts, wanted = from_bytes(content.tobytes())
        train_x, train_y, test_x, test_y, *more = message.data.arrays()
        vectors = more[0] if more else None
        classes, pixel_max, vocabulary, token_fill = facts
        data = Dataset(
            *(train_x, train_y, test_x, test_y),
            classes=classes,
            pixel_max=pixel_max,
            vocabulary=vocabulary,
            vectors=vectors,
            token_fill=token_fill,
        )
        model, local, seed, precision, fast, algorithm, task = settings
        trainer = Trainer(TrainingSetup(model, data, local, seed, precision, fast, algorithm=algorithm, task=task))
        with named_faults(trainer.setup):
            check_same(trainer, wanted)
        while len(_TRAINERS) >= _MOST_SETUPS:
            del _TRAINERS[next(iter(_TRAINERS))]
        _TRAINERS[message.number] = trainer
    return _TRAINERS[message.number]
