"""The executor "sequential": trains one client after the other in this process."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

from fedsim.arrays import FloatArray
from fedsim.errors import FedsimError
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.alone import sound_trainer
from fedsim.learning.executors.chunks import Chunk, evaluated
from fedsim.learning.executors.contracts import (
    SEQUENTIAL,
    EvaluationJob,
    TrainingJob,
    TrainingResult,
    TrainingSetup,
    fingerprint_with,
)
from fedsim.learning.executors.faults import named_faults
from fedsim.learning.executors.trainer import Trainer, one_thread
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


class SequentialExecutor:
    """Trains clients one after the other, each on one thread, with the same bits on every run.

    Calls from several threads wait for one another.

    Parameters
    ----------
    setup : TrainingSetup
    device : ``"cpu"``, ``"cuda"`` or ``"cuda:0"``

    Attributes
    ----------
    fingerprint : `SEQUENTIAL`, with the precision if it is another one, and on a GPU with its name and torch's release
    max_batch : 256

    Raises
    ------
    FedsimError
        If there is no such device.
    """

    fingerprint: str = SEQUENTIAL
    max_batch: int = 256

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        where = device_of(device)
        self.fingerprint = fingerprint_with(setup.precision, self.fingerprint)
        if where.type == "cuda":
            self.fingerprint += f":torch{torch.__version__}:{torch.cuda.get_device_name(where)}"
        self._device = str(where)
        self._test_samples, self._made_of = len(setup.data.test_y), setup.scores
        self._setup = setup
        with one_thread(), named_faults(setup):
            self.trainer = sound_trainer(setup, self._device)
        self._scorers: list[Trainer] = []

    @property
    def flat(self) -> FlatModule:
        """The module that all trainings share."""
        return self.trainer.flat

    def train(self, jobs: Sequence[TrainingJob]) -> Iterator[TrainingResult]:
        """Yield what each client learns; a client is trained when its result is read."""
        for place, job in enumerate(jobs):
            with one_thread(), named_faults(self._setup, place):
                result = self.trainer.train(job)
            yield result

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> list[Evaluation]:
        with named_faults(self._setup):
            return evaluated(jobs, self._test_samples, self._made_of, self._scores)

    def _scores(self, chunks: Sequence[Chunk]) -> list[FloatArray]:
        """Return the sums of each chunk; threads share the chunks, each with a module of its own."""
        threads = 1 if self._device != "cpu" else min(torch.get_num_threads(), len(chunks))
        while len(self._scorers) < threads:
            self._scorers.append(Trainer(self._setup, self._device))
        shares = [chunks[one * len(chunks) // threads : (one + 1) * len(chunks) // threads] for one in range(threads)]
        pairs = list(zip(self._scorers, shares, strict=False))
        with one_thread():
            if threads == 1 or self.trainer.sandbox is not None:  # generators of Python are those of all threads
                return [scorer.score(chunk) for scorer, share in pairs for chunk in share]
            with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                found = pool.map(lambda pair: [pair[0].score(chunk) for chunk in pair[1]], pairs)
                return [sums for share in found for sums in share]
