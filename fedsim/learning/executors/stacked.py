"""The executor "stacked": trains a whole cohort at once, with the clients' models one above the other."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import torch

from fedsim.errors import FedsimError
from fedsim.learning.contracts import Evaluation
from fedsim.learning.executors.contracts import EvaluationJob, TrainingJob, TrainingResult, TrainingSetup
from fedsim.learning.executors.stacked_evaluation import SlotEvaluation
from fedsim.learning.executors.stacked_graph import ModuleOfSlots
from fedsim.learning.executors.stacked_samples import Samples
from fedsim.learning.executors.stacked_training import SlotTraining
from fedsim.learning.models.flat_module import build_flat

_SLOTS: Final = 32
"""Most clients trained at once."""
_SLOT_BYTES: Final = 2**30
"""Memory that models, gradients and optimiser states of all slots may take."""
_RESULT_BYTES: Final = 2**28
"""Memory that the results of one call may take."""


class StackedExecutor:
    """Trains as many clients at once as there are slots; each operation of the model is done for all slots together.

    Parameters
    ----------
    setup : TrainingSetup
    device : ``"cpu"``, ``"cuda"`` or ``"cuda:0"``

    Attributes
    ----------
    fingerprint : ``"stacked"`` with all that the bits depend on
    max_batch : as many trainings as have results of 256 MiB, or as there are slots

    Raises
    ------
    FedsimError
        If there is no such device, or torch cannot map the model over clients.
    """

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        where, data, local = checked_device(device), setup.data, setup.local
        flat = build_flat(setup.model, data.shape, data.classes, setup.seed)
        size, states = 4 * flat.vector.numel(), 2 if local.optimizer == "adam" else bool(local.momentum)
        slots = min(_SLOTS, 1 << (max(1, _SLOT_BYTES // (size * (5 + states))).bit_length() - 1))
        self.max_batch = max(slots, min(1024, _RESULT_BYTES // (size * (1 + states * local.keep_optimizer_state))))
        unit = torch.cuda.get_device_name(where) if where.type == "cuda" else torch.backends.cpu.get_cpu_capability()
        self.fingerprint = f"stacked:{slots}:{setup.precision}:torch{torch.__version__}:{unit}"
        self._lock = threading.Lock()
        samples = Samples(data, where)
        module = ModuleOfSlots(flat, slots, where, torch.bfloat16 if setup.precision == "bfloat16" else None)
        with self._computing():
            self._training = SlotTraining(module, samples, local, data.classes, flat.layout.smallest_batch)
            self._evaluation = SlotEvaluation(module, samples)

    def train(self, jobs: Sequence[TrainingJob]) -> list[TrainingResult]:
        """Return what each client learns."""
        with self._computing():
            return self._training.train(jobs) if jobs else []

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> list[Evaluation]:
        """Return accuracy and mean loss of each job; it waits for a training that runs in another thread."""
        with self._computing():
            return self._evaluation.evaluate(jobs) if jobs else []

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Compute on one thread of the CPU, so that every sum has one order."""
        with self._lock, torch.no_grad():
            before = torch.get_num_threads()
            torch.set_num_threads(1)
            try:
                yield
            finally:
                torch.set_num_threads(before)


def checked_device(device: str) -> torch.device:
    """Return a device of torch, or raise `FedsimError` if there is none of that name here."""
    kind, _, number = device.partition(":")
    if device == "cpu":
        return torch.device("cpu")
    if kind != "cuda" or not (number.isdecimal() or device == "cuda"):
        raise FedsimError(f"device: {device!r} is not allowed; it must be 'cpu', 'cuda' or 'cuda:N'")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number or 0) >= count:
        raise FedsimError(f"device: {device!r} is not allowed; torch finds {count} CUDA devices here")
    return torch.device("cuda", int(number or 0))
