"""The executor "auto": chosen by rule before a run, from layers, sizes, jobs, cores and device; nothing is tried out.

The seconds of an estimate are those of one core of a server; only their sizes matter.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import numpy as np

from fedsim.errors import FedsimError
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.choice import AUTO, EXECUTORS, GRAPHS, PROCESSES, STACKED
from fedsim.learning.executors.contracts import (
    SEQUENTIAL,
    EvaluationJob,
    Executor,
    TrainingJob,
    TrainingResult,
    TrainingSetup,
)
from fedsim.learning.executors.cores import worker_count
from fedsim.learning.local_training import FORWARD_AND_BACKWARD

_LAYER_S: Final = 25e-6
"""Of calls for a layer in a step, forward and backward, and of the step itself as of that many layers."""
_STEP_LAYERS: Final = 4
_FLOPS_PER_S: Final = 4e10
_STACKED_FLOPS_PER_S: Final = 1e10
"""Of small products of many models, whose parts of a batch are filled up."""
_STACKED_CALLS: Final = 1.5
"""Seconds of a step of all slots in those of a step of one client, but for arithmetic."""
_MOST_SLOTS: Final = 32
_START_S: Final = {PROCESSES: 2.5, STACKED: 0.4, GRAPHS: 8.0}
"""Until workers compute, and for the recording of steps."""
_MESSAGES: Final = 1.05
_CLEAR: Final = 0.8
"""Share of the time of a bitwise executor that another one has to stay below."""
_GPU: Final = 0.1
"""Share of the time of one core that trainings take on a GPU, at most."""


class Step(NamedTuple):
    """What a training step costs: how many layers it calls, and the operations of a sample.

    ``norms`` says that a layer takes away what a bias in front of it adds, ``threads`` how many clients one process
    trains at a time.
    """

    layers: int
    flops: float
    norms: bool = False
    threads: int = 1


class AutoExecutor:
    """The executor with the least estimated time for the whole run, start-up included.

    Parameters
    ----------
    setup : TrainingSetup
    device : in torch's words, or ``"auto"``: a GPU where there is one and it is faster, else the CPU

    Attributes
    ----------
    kind, device : of the executor that was chosen
    executor : that executor
    fingerprint, max_batch : of that executor

    Raises
    ------
    FedsimError
        If no executor computes on the device with the precision.
    """

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        self.kind, self.device, self.executor = _choose(setup, device)
        self.fingerprint, self.max_batch = self.executor.fingerprint, self.executor.max_batch

    def train(self, jobs: Sequence[TrainingJob]) -> Iterable[TrainingResult]:
        return self.executor.train(jobs)

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> Sequence[Evaluation]:
        return self.executor.evaluate(jobs)


def _choose(setup: TrainingSetup, device: str) -> tuple[str, str, Executor]:
    kinds = [(SEQUENTIAL, device)]
    if device in ("cpu", "auto"):
        seconds = estimates(setup, worker_count())
        bitwise = min(seconds[kind] for kind in (SEQUENTIAL, PROCESSES))
        fast = [STACKED] if STACKED in seconds and seconds[STACKED] < _CLEAR * bitwise else []
        order = sorted((kind for kind in seconds if kind != STACKED or fast), key=lambda kind: seconds[kind])
        kinds = [(kind, "cpu") for kind in order]
        if device == "auto" and _START_S[GRAPHS] + _GPU * seconds[SEQUENTIAL] < seconds[order[0]] and _has_gpu():
            kinds.insert(0, (GRAPHS, "cuda"))
    elif device.startswith("cuda"):
        kinds = [(GRAPHS, device), (SEQUENTIAL, device)]
    refused = []
    for kind, place in kinds:
        try:
            return kind, place, EXECUTORS.load(kind)(setup, place)
        except FedsimError as error:
            refused.append(f"{kind}: {error}")
    raise FedsimError(
        f"executor: {AUTO!r} finds none for the device {device!r} and the precision {setup.precision!r}\n  "
        + "\n  ".join(refused)
    )


def estimates(setup: TrainingSetup, cores: int, step: Step | None = None) -> dict[str, float]:
    """Return about how many seconds the trainings of a run take, by the kinds that may compute it."""
    expected, local = setup.expected, setup.local
    if expected is None:
        return {SEQUENTIAL: 0.0, PROCESSES: _START_S[PROCESSES]}
    cost = step or _step_of(setup)
    updates = expected.rounds * expected.cohort
    steps = updates * float(np.mean(local.batches(expected.samples)))
    flops = updates * float(np.mean(local.work_samples(expected.samples))) * cost.flops
    calls_s = steps * (cost.layers + _STEP_LAYERS) * _LAYER_S
    alone_s = calls_s + flops / _FLOPS_PER_S
    threads = min(cost.threads, cores, expected.cohort)
    # Calls hold Python's lock, which threads share.
    here_s = alone_s if threads == 1 else max(alone_s * _MESSAGES / threads, calls_s)
    found = {SEQUENTIAL: here_s, PROCESSES: _shared_s(alone_s * _MESSAGES, min(cores, expected.cohort))}
    # Such a bias has no gradient but rounding, which Adam makes a whole step of.
    if not (setup.amplified or (local.optimizer == "adam" and cost.norms)):
        slots = min(expected.cohort, _MOST_SLOTS)
        mapped_s = _STACKED_CALLS * calls_s / slots + flops / _STACKED_FLOPS_PER_S
        found[STACKED] = _START_S[STACKED] + mapped_s
    return found


def _shared_s(alone_s: float, cores: int) -> float:
    """Return how long cores take together of which all but the first begin later."""
    if cores == 1:
        return alone_s + _START_S[PROCESSES]
    return max((alone_s + (cores - 1) * _START_S[PROCESSES]) / cores, min(alone_s, _START_S[PROCESSES]) + 0.1)


def _step_of(setup: TrainingSetup) -> Step:
    """Return the cost of a step, by the layers that a blank sample passes, their weights and what leaves them."""
    import torch
    from torch import Tensor, nn

    from fedsim.learning.executors.sequential import training_threads
    from fedsim.learning.executors.trainer import Trainer, one_thread
    from fedsim.learning.models.inputs import blank

    norm_layers = (nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm, nn.GroupNorm, nn.LayerNorm)
    layers, flops = 0, 0.0

    def count(layer: nn.Module, _: object, out: object) -> None:
        nonlocal layers, flops
        layers += not any(True for _ in layer.children())
        if isinstance(layer, nn.Embedding | nn.EmbeddingBag):
            return
        for weight in layer.parameters(recurse=False):
            if weight.dim() > 1 and isinstance(out, Tensor):
                flops += 2.0 * weight.numel() * max(1.0, out.numel() / weight.shape[0])

    # On one thread: that of others to start takes longer than the pass.
    with one_thread(setup):
        trainer = Trainer(setup)
        module = trainer.flat.module
        hooks = [one.register_forward_hook(count) for one in module.modules()]
        with torch.no_grad(), suppress(Exception):  # the first look says what is wrong with a model
            module.eval()(blank(setup.data.shape))
    for hook in hooks:
        hook.remove()
    # The optimiser moves each parameter once a step.
    moved = 6.0 * trainer.flat.layout.parameters / setup.local.batch_size
    norms = any(isinstance(one, norm_layers) for one in module.modules())
    return Step(max(1, layers), FORWARD_AND_BACKWARD * flops + moved, norms, training_threads(trainer))


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()
