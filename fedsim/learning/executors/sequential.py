"""The executor "sequential": trains one client after the other in this process, on its cores where bits allow it."""

import copy
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import torch

from fedsim.errors import FedsimError
from fedsim.learning.executors.contracts import (
    SEQUENTIAL,
    TrainingJob,
    TrainingResult,
    TrainingSetup,
    fingerprint_with,
    most_trainings,
)
from fedsim.learning.executors.cores import worker_count
from fedsim.learning.executors.own_code import named_faults
from fedsim.learning.executors.spreading import SpreadingExecutor, spread
from fedsim.learning.executors.trainer import Trainer, one_thread
from fedsim.learning.executors.trials import checked_print
from fedsim.learning.generators import seed_generators
from fedsim.learning.models.flat_module import FlatModule


def device_of(device: str) -> torch.device:
    """Return a device that is there; refuse any other."""
    kind, _, number = device.partition(":")
    if device == "cpu":
        return torch.device("cpu")
    if kind != "cuda" or not (number.isdecimal() or device == "cuda"):
        raise FedsimError(f"device: {device!r} is not allowed; it must be 'cpu', 'cuda' or 'cuda:N'")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number or 0) >= count:
        raise FedsimError(f"device: {device!r} is not allowed; torch finds {count} CUDA devices here")
    return torch.device("cuda", int(number or 0))


def training_threads(trainer: Trainer) -> int:
    """Return how many trainings this process does at a time."""
    threads = _threads(trainer)
    return 1 if threads > 1 and not trainer.setup.fast and trainer.draws() else threads


def _threads(trainer: Trainer) -> int:
    alone = trainer.device.type != "cpu" or trainer.sandbox is not None
    return 1 if alone else min(torch.get_num_threads(), worker_count())


class SequentialExecutor(SpreadingExecutor):
    """Trains each client on one thread, with the same bits on every run.

    On a CPU several clients are trained at a time, each by a module of its own on a thread of its own: as many as torch
    has threads, where no code of a user's takes part and the model draws no random numbers, which come from generators
    of the whole process (with ``fast`` threads take them in turn). Otherwise clients are trained one after the other.
    Calls from several threads wait for one another.
    """

    fingerprint: str = SEQUENTIAL
    max_batch: int = 256

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        super().__init__(setup)
        where = device_of(device)
        self.fingerprint = fingerprint_with(setup, self.fingerprint)
        if where.type == "cuda":
            self.fingerprint += f":torch{torch.__version__}:{torch.cuda.get_device_name(where)}"
        self._device = str(where)
        with one_thread(setup), named_faults(setup):
            self.trainer = Trainer(setup, self._device)
            self.print = checked_print(self.trainer)
        with named_faults(setup):
            self.threads, self._scoring_threads = training_threads(self.trainer), _threads(self.trainer)
        self._trainers = [self.trainer]
        self.max_batch = min(self.max_batch, most_trainings(setup, self.flat.layout))

    @property
    def flat(self) -> FlatModule:
        """The module of the first thread."""
        return self.trainer.flat

    def train(self, jobs: Sequence[TrainingJob]) -> Iterable[TrainingResult]:
        """Return what each client learns; on one thread torch's own layers are trained when a result is read."""
        if min(self.threads, len(jobs)) > 1:
            return super().train(jobs)
        if self.trainer.sandbox is not None:  # in one turn, since to put all generators back takes longer than to seed
            return self.trainer.computed(jobs)
        return (self.trainer.computed([job], place)[0] for place, job in enumerate(jobs))

    def _computed(self, items: Sequence[Any], costs: Sequence[float]) -> list[Any]:
        """Return the results of jobs or chunks, in their order; a thread computes a share with a free trainer."""
        count, threads, is_training = len(items), self._scoring_threads, isinstance(items[0], TrainingJob)
        if is_training:
            # A few more than cores at a time, which share them, so that none stands still while the last ones train.
            threads = self.threads + count % self.threads
        threads = min(threads, count)
        if threads < 2:
            return self.trainer.computed(items)
        with self.trainer.turn(), ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            self._trainers += [Trainer(self._run, self._device) for _ in range(threads - len(self._trainers))]
            free: SimpleQueue[Trainer] = SimpleQueue()
            for trainer in self._trainers[:threads]:
                free.put(trainer)

            def there(share: Sequence[int]) -> list[Any]:
                trainer = free.get()
                try:
                    return [trainer.compute(items[i], i, seeds=False) for i in share]
                finally:
                    free.put(trainer)

            if is_training:  # of what threads draw in turn with ``fast``
                seed_generators(int(copy.deepcopy(items[0].rng).integers(2**63)), every=False)
            # In shares of one, so that an interrupt or a failure waits for trainings that have begun alone.
            return spread(costs, count, lambda share: pool.submit(there, share))
