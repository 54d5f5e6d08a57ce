"""The executor "stacked": trains a whole cohort at once, with the clients' models one above the other."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import torch

from fedsim.errors import FedsimError
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.contracts import (
    EvaluationJob,
    TrainingJob,
    TrainingResult,
    TrainingSetup,
    check_mapped,
)
from fedsim.learning.executors.faults import named_faults
from fedsim.learning.executors.objective import Objective, tried
from fedsim.learning.executors.stacked.evaluation import SlotEvaluation
from fedsim.learning.executors.stacked.graph import Compile, ModuleOfSlots
from fedsim.learning.executors.stacked.plan import Drawing
from fedsim.learning.executors.stacked.samples import Samples
from fedsim.learning.executors.stacked.training import SlotTraining, UnlikeError
from fedsim.learning.executors.trainer import one_thread
from fedsim.learning.models.flat_module import build_flat

_MOST: Final = 32
"""Most clients trained at once."""
_FEW: Final = 4
"""Smallest number of slots; all numbers of slots are multiples of it."""
_SLOT_BYTES: Final = 2**30
"""Memory of models, gradients and optimiser states of all slots."""
_RESULT_BYTES: Final = 2**28
"""Memory of the results of one call."""
_BATCH_BYTES: Final = 2**25
"""Memory of the samples of a full batch in one slot."""


class StackedExecutor:
    """Trains as many clients at once as there are slots; each operation of the model is done for all slots together.

    A cohort gets the slots that it needs. Whether a step has the same bits in few and in many slots is tried at the
    first step of each shape; where it has not, few slots are used.

    Parameters
    ----------
    setup : TrainingSetup
    device : ``"cpu"``, ``"cuda"`` or ``"cuda:0"``
    compile_step : compiles steps, if they are to be compiled

    Attributes
    ----------
    fingerprint : ``"stacked"`` with all that the bits depend on
    max_batch : as many trainings as have results of 256 MiB, or as there are slots

    Raises
    ------
    FedsimError
        If there is no such device, torch cannot map the model over clients, a full batch is too large, or losses of
        samples depend on one another.
    """

    def __init__(self, setup: TrainingSetup, device: str = "cpu", compile_step: Compile | None = None) -> None:
        check_mapped("stacked", setup.algorithm, setup.task)
        where, data, local = checked_device(device), setup.data, setup.local
        flat = build_flat(setup.model, data.shape, setup.outputs, setup.seed)
        size, states = 4 * flat.vector.numel(), 2 if local.optimizer == "adam" else bool(local.momentum)
        fitting = _SLOT_BYTES // (size * (5 + states + setup.algorithm.corrects))
        self._few = min(_FEW, max(1, fitting))
        self._most = min(_MOST, max(1, fitting // _FEW) * self._few)
        if where.type == "cuda":
            # Kernels there are chosen by the number of slots, and idle slots cost little.
            self._few = self._most
        kept = size * (1 + states * local.keep_optimizer_state)
        self.max_batch = max(self._most, min(1024, _RESULT_BYTES // kept))
        unit = torch.cuda.get_device_name(where) if where.type == "cuda" else torch.backends.cpu.get_cpu_capability()
        self.fingerprint = f"stacked:{setup.precision}:{self._few}:torch{torch.__version__}:{unit}"
        self._autocast = torch.bfloat16 if setup.precision == "bfloat16" else None
        self._flat, self._setup, self._objective = flat, setup, Objective(setup)
        self._samples = Samples(data, where)
        if local.batch_size * (each := self._samples.input_bytes) > _BATCH_BYTES:
            raise FedsimError(
                f"learning.local.batch_size: {local.batch_size} is not allowed with the executor 'stacked', which has "
                f"room for a full batch of each client; allowed: at most {_BATCH_BYTES // each} of these samples, or "
                "the executors 'sequential' and 'processes'"
            )
        self._compile_step, self._drawing = compile_step, Drawing(local, flat.layout.smallest_batch)
        self._trainings: dict[int, SlotTraining] = {}
        self._refused: set[int] = set()
        with self._computing(), named_faults(setup):
            self._check_losses()
            self._training(self._few)
            self._evaluation = SlotEvaluation(self._module(self._few), self._samples, setup.scores)

    def train(self, jobs: Sequence[TrainingJob]) -> list[TrainingResult]:
        if not jobs:
            return []
        with self._computing(), named_faults(self._setup):
            batches = [self._drawing.batches(job) for job in jobs]
            passes = -(-len(jobs) // self._most)
            slots = -(-len(jobs) // (passes * self._few)) * self._few
            if slots not in self._refused:
                try:
                    return self._training(slots).train(jobs, batches)
                except UnlikeError:
                    self._refused.add(slots)
                    del self._trainings[slots]
            return self._training(self._few).train(jobs, batches)

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> list[Evaluation]:
        """Return loss and metrics of each job; it waits for a training in another thread."""
        with self._computing(), named_faults(self._setup):
            return self._evaluation.evaluate(jobs) if jobs else []

    def _check_losses(self) -> None:
        """Refuse losses that depend on the other samples, since batches are filled up here."""
        if self._module(self._few).mixes_losses(*self._samples.batch(tried(self._samples.count))):
            raise FedsimError(
                f"learning.task: losses of {type(self._setup.task).__name__} depend on the other samples of a batch, "
                "which the executor 'stacked' fills up; allowed: the executors 'sequential' and 'processes'"
            )

    def _training(self, slots: int) -> SlotTraining:
        if slots not in self._trainings:
            few = self._trainings.get(self._few)
            made = SlotTraining(self._module(slots), self._samples, self._setup, few)
            self._trainings[slots] = made
        return self._trainings[slots]

    def _module(self, slots: int) -> ModuleOfSlots:
        return ModuleOfSlots(
            self._flat, slots, self._samples.device, self._autocast, self._compile_step, self._objective
        )

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Compute on one thread of the CPU, and with exact kernels on a GPU, so that every sum has one order."""
        exact = torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False)
        with one_thread(), torch.no_grad(), exact:
            yield


def checked_device(device: str) -> torch.device:
    kind, _, number = device.partition(":")
    if device == "cpu":
        return torch.device("cpu")
    if kind != "cuda" or not (number.isdecimal() or device == "cuda"):
        raise FedsimError(f"device: {device!r} is not allowed; it must be 'cpu', 'cuda' or 'cuda:N'")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number or 0) >= count:
        raise FedsimError(f"device: {device!r} is not allowed; torch finds {count} CUDA devices here")
    return torch.device("cuda", int(number or 0))
