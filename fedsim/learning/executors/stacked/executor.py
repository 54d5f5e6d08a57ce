"""The executor "stacked": trains a whole cohort at once, with the clients' models one above the other."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Final

import torch
from torch import Tensor, nn

from fedsim.code_digest import is_builtin
from fedsim.errors import FedsimError
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.batches import Batches, Drawing, Samples
from fedsim.learning.executors.contracts import (
    EvaluationJob,
    TrainingJob,
    TrainingResult,
    TrainingSetup,
    check_cpu,
    check_mapped,
    fingerprint_with,
    most_trainings,
)
from fedsim.learning.executors.objective import Objective
from fedsim.learning.executors.own_code import named_faults
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.executors.stacked.step import ModelsOfSlots, refused_unless_mapped
from fedsim.learning.executors.stacked.training import SlotTraining
from fedsim.learning.executors.trainer import Trainer, one_thread
from fedsim.learning.executors.trials import check_alike, checked_print
from fedsim.learning.models.flat_module import build_flat
from fedsim.learning.models.settings import own_name

_MOST: Final = 32
"""Most clients trained at once."""
_FEW: Final = 4
"""Smallest number of slots; all numbers of slots are multiples of it."""
_VECTOR: Final = 16
"""Smallest number of slots of a model that needs batches in their own size."""
_SLOT_BYTES: Final = 2**30
"""Memory of models, gradients and optimiser states of all slots."""
_MOST_JOBS: Final = 1024
"""Most trainings of one call."""
_TOLERANCE: Final = {"float32": 1e-4, "bfloat16": 0.2}
"""Largest difference from one by one, relative to the largest difference of a training."""
_BATCH_BYTES: Final = 2**25
"""Memory of the samples of a full batch in one slot."""


class StackedExecutor:
    """Trains as many clients at once as there are slots; each operation of the model is done for all slots together.

    A cohort gets the slots that it needs. Whether a step has the same bits in few and in many slots is tried at the
    first step of each shape; where it has not, few slots are used.

    Parameters
    ----------
    setup : TrainingSetup
    device : ``"cpu"``
    """

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        check_cpu("stacked", device)
        check_mapped("stacked", setup.algorithm, setup.task)
        data, local = setup.data, setup.local
        flat = build_flat(setup.model, data.shape, setup.outputs, setup.seed)
        if setup.precision == "bfloat16":
            for part in flat.module.modules():
                if isinstance(part, nn.modules.batchnorm._BatchNorm):
                    part.register_forward_pre_hook(_in_float32)
        size, states = 4 * flat.vector.numel(), 2 if local.optimizer == "adam" else bool(local.momentum)
        fitting = _SLOT_BYTES // (size * (5 + states + setup.algorithm.corrects))
        self._few = min(_FEW, max(1, fitting))
        self._most = min(_MOST, max(1, fitting // _FEW) * self._few)
        self.max_batch = most_trainings(setup, flat.layout, _MOST_JOBS)
        self._flat, self._setup, self._objective = flat, setup, Objective(setup)
        self._samples = Samples(data)
        if local.batch_size * (each := self._samples.input_bytes) > _BATCH_BYTES:
            raise FedsimError(
                f"learning.local.batch_size: {local.batch_size} is not allowed with the executor 'stacked', which has "
                f"room for a full batch of each client; allowed: at most {_BATCH_BYTES // each} of these samples, or "
                "the executors 'sequential' and 'processes'"
            )
        self._check_layers()
        self._drawing = Drawing(local, flat.layout.smallest_batch)
        self._trainings: dict[int, SlotTraining] = {}
        with self._computing(), named_faults(setup), refused_unless_mapped():
            if self._training(self._few).padded_to is None:
                # Vectors of the processor then have no rest at any size of a batch, whose bits would be others.
                self._few, self._most = max(self._few, _VECTOR), max(self._most, _VECTOR)
                self._training(self._few)
        unit = f"torch{torch.__version__}:{torch.backends.cpu.get_cpu_capability()}"
        named = f"stacked:{setup.precision}:{self._few}:{unit}"
        self.fingerprint = fingerprint_with(replace(setup, precision="float32"), named)
        if own_name(setup.model) is not None or not is_builtin(type(setup.task)):
            self._check_numbers()

    def train(self, jobs: Sequence[TrainingJob]) -> list[TrainingResult]:
        if not jobs:
            return []
        with self._computing(), named_faults(self._setup):
            batches = [self._drawing.batches(job) for job in jobs]
            passes = -(-len(jobs) // self._most)
            slots = -(-len(jobs) // (passes * self._few)) * self._few
            if not self._training(slots).is_sound(_sizes(batches)):
                self._trainings[slots] = self._training(self._few)
            return self._trainings[slots].train(jobs, batches)

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> list[Evaluation]:
        """Return loss and metrics of each job, as the sequential executor does."""
        return self._evaluating.evaluate(jobs)

    @cached_property
    def _evaluating(self) -> SequentialExecutor:
        return SequentialExecutor(self._setup)

    def _check_layers(self) -> None:
        """Refuse embeddings with rows that torch's mapping over clients moves though they have no gradient."""
        for name, one in self._flat.module.named_modules():
            if isinstance(one, nn.Embedding) and (one.padding_idx is not None or one.scale_grad_by_freq):
                raise FedsimError(
                    f"learning.model: layer {name} is an Embedding with padding_idx or scale_grad_by_freq, whose "
                    "gradients torch does not map over clients; allowed: the executors 'sequential' and 'processes'"
                )

    def _check_numbers(self) -> None:
        """Refuse a module or a task that has other numbers mapped over clients than one by one, by standard jobs."""
        # By steps of SGD: Adam makes a whole step of what is rounding alone.
        plain = {"optimizer": "sgd", "keep_optimizer_state": False}
        own = self._setup.local
        setup = replace(self._setup, local=own if own.optimizer == "sgd" else own.model_copy(update=plain))

        def mapped(jobs: Sequence[TrainingJob]) -> list[TrainingResult]:
            with torch.no_grad(), refused_unless_mapped():
                training = SlotTraining(self._models(self._few), self._samples, setup)
                batches = [self._drawing.batches(job) for job in jobs]
                training.is_sound(_sizes(batches))
                return training.train(jobs, batches)

        with one_thread(setup), named_faults(setup):
            trainer = Trainer(setup)
            checked_print(trainer)
            check_alike(trainer, "stacked", "mapped over clients it differs", mapped, _TOLERANCE[setup.precision])

    def _training(self, slots: int) -> SlotTraining:
        if slots not in self._trainings:
            few = self._trainings.get(self._few)
            self._trainings[slots] = SlotTraining(self._models(slots), self._samples, self._setup, few)
        return self._trainings[slots]

    def _models(self, slots: int) -> ModelsOfSlots:
        autocast = torch.bfloat16 if self._setup.precision == "bfloat16" else None
        return ModelsOfSlots(self._flat, slots, self._objective, autocast)

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Compute on one thread, so that every sum has one order."""
        with one_thread(self._setup), torch.no_grad():
            yield


def _sizes(batches: Sequence[Batches]) -> set[int]:
    return {size for one in batches for size in one.sizes.tolist()}


def _in_float32(_: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Normalise in the type of the layer's own numbers."""
    return tuple(one.float() for one in given)
