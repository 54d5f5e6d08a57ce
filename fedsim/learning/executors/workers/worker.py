"""The main program of a worker process: computes requests on one thread, until its parent is gone."""

import os
import queue
import socket
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedsim.arrays import FloatArray
from fedsim.errors import FedsimError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.executors.chunks import Chunk
from fedsim.learning.executors.contracts import TrainingResult, TrainingSetup
from fedsim.learning.executors.faults import named_faults
from fedsim.learning.executors.trainer import Trainer
from fedsim.learning.executors.workers.channel import Channel, by_value, from_bytes
from fedsim.learning.executors.workers.messages import Reply, Request, Scores, SetupMessage, SharedArray, Trainings
from fedsim.learning.executors.workers.segments import Segment


class Worker:
    """Holds the segments and the trainers of the setups in use."""

    def __init__(self) -> None:
        self._segments: dict[int, Segment] = {}
        self._setups: dict[int, SetupMessage] = {}
        self._trainers: dict[int, Trainer] = {}

    def answer(self, request: Request, segments: Sequence[Segment]) -> Reply:
        """Return the reply to a request and the segments that came with it."""
        start = time.perf_counter()
        found: list[TrainingResult] | list[FloatArray] | bytes
        try:
            self._update(request, segments)
            trainer = self._trainer(request.setup)
            start = time.perf_counter()
            if isinstance(request.work, Trainings):
                found = self._train(trainer, request.work)
            else:
                with named_faults(trainer.setup):
                    found = self._score(trainer, request.work)
        except Exception as error:
            found = _portable(error)
        return Reply(found, time.perf_counter() - start)

    def _update(self, request: Request, segments: Sequence[Segment]) -> None:
        """Take in what is new, and let go of what is not in use."""
        for number in request.old_setups:
            del self._setups[number]
            self._trainers.pop(number, None)
        for number in request.old_segments:
            del self._segments[number]
        self._segments.update(zip(request.new_segments, segments, strict=True))
        if request.new_setup is not None:
            self._setups[request.setup] = request.new_setup

    def _trainer(self, number: int) -> Trainer:
        if number not in self._trainers:
            message = self._setups[number]
            sys.path[:] = message.path
            model, local, seed, precision, algorithm, task = from_bytes(message.settings)
            shared = message.data
            train_x, train_y, test_x, test_y, *vectors = (self._array(part) for part in shared.arrays)
            data = Dataset(
                *(train_x, train_y, test_x, test_y),
                classes=shared.classes,
                pixel_max=shared.pixel_max,
                vocabulary=shared.vocabulary,
                vectors=vectors[0] if vectors else None,
                token_fill=shared.token_fill,
            )
            setup = TrainingSetup(model, data, local, seed, precision, algorithm=algorithm, task=task)
            self._trainers[number] = Trainer(setup)
        return self._trainers[number]

    def _train(self, trainer: Trainer, work: Trainings) -> list[TrainingResult]:
        found = []
        for place, (job, base) in enumerate(zip(work.jobs, work.bases, strict=True)):
            with named_faults(trainer.setup, place):
                found.append(trainer.train(job if base is None else job._replace(base=self._array(base))))
        return found

    def _score(self, trainer: Trainer, work: Scores) -> list[FloatArray]:
        found = []
        for model, group in groupby(zip(work.models, work.rows, work.places, strict=True), lambda chunk: chunk[0]):
            vector = self._array(model)
            trainer.load(vector)
            found += [trainer.score(Chunk(vector, rows, *place)) for _, rows, place in group]
        return found

    def _array(self, shared: SharedArray) -> NDArray[Any]:
        view = self._segments[shared.segment].view(shared.place)
        return np.frombuffer(view, shared.dtype).reshape(shared.shape)


def main(handle: int) -> None:
    """Serve the other end of a socket, given as a file descriptor, and end with it.

    A thread of its own reads, so that the process ends at once when its parent does, in the middle of a training too.
    """
    torch.set_num_threads(1)
    channel, worker = Channel(socket.socket(fileno=handle)), Worker()
    waiting: queue.SimpleQueue[tuple[Request, list[Segment]]] = queue.SimpleQueue()

    def read() -> None:
        try:
            while True:
                waiting.put(channel.receive(copy=False))
        except (EOFError, OSError):
            os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        request, segments = waiting.get()
        channel.send(worker.answer(request, segments))


def _portable(error: Exception) -> bytes:
    """Return an error as bytes; one that cannot be pickled is put into words."""
    if not isinstance(error, FedsimError):
        error.add_note(f"In a worker process:\n{''.join(traceback.format_exception(error))}")
    try:
        content = by_value(error)
        from_bytes(content)
    except Exception:
        return by_value(FedsimError(f"a worker process failed: {error!r}"))
    return content
