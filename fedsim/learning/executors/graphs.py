"""The executor "graphs": each training step on a GPU is a recorded CUDA graph, started by one call.

A slot is a module with a stream of its own; clients are handed to slots in turn, each step of a client is one replay.
The kernels are those of an eager step, so that results have its bits, whatever the slot or the company.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from fedsim.errors import FedsimError
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.batches import Batches, Samples
from fedsim.learning.executors.contracts import (
    EvaluationJob,
    TrainingJob,
    TrainingResult,
    TrainingSetup,
    check_mapped,
    most_trainings,
)
from fedsim.learning.executors.objective import Seen
from fedsim.learning.executors.own_code import named_faults
from fedsim.learning.executors.sequential import SequentialExecutor, device_of
from fedsim.learning.executors.trainer import Trainer
from fedsim.learning.executors.trials import check_alike
from fedsim.learning.generators import torch_generator

_MOST_SLOTS: Final = 16
_WARM_UPS: Final = 2
"""Steps before a recording, in which libraries choose kernels and take memory."""
_FREE: Final = 0.6
"""Share of the free memory of the device that slots may take."""


class GraphsExecutor:
    """Trains clients on a GPU, several at once, each step as one recorded graph.

    Parameters
    ----------
    setup : TrainingSetup
    device : ``"cuda"`` or ``"cuda:0"``; on ``"cpu"`` steps are not recorded, which is for tests
    """

    def __init__(self, setup: TrainingSetup, device: str = "cuda") -> None:
        check_mapped("graphs", setup.algorithm, setup.task)
        self._eager = SequentialExecutor(setup, device)
        self.fingerprint, self._setup, self._device = self._eager.fingerprint, setup, device_of(device)
        self._samples = Samples(setup.data, self._device)
        self.max_batch = most_trainings(setup, self._eager.flat.layout)
        self._slots: list[_Slot] = []
        self._most = _MOST_SLOTS
        with self._eager.trainer.turn(), named_faults(setup), torch_generator(0):
            self._check()

    def train(self, jobs: Sequence[TrainingJob]) -> list[TrainingResult]:
        """Return what each client learns; results are read from the device after the last step of all."""
        with self._eager.trainer.turn(), named_faults(self._setup), torch_generator(0):
            return self._train(jobs) if jobs else []

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> list[Evaluation]:
        return self._eager.evaluate(jobs)

    def _train(self, jobs: Sequence[TrainingJob]) -> list[TrainingResult]:
        asked = [(job, self._eager.trainer.drawing.batches(job)) for job in jobs]
        sizes = sorted({size for _, batches in asked for size in batches.sizes.tolist()}, reverse=True)
        found: list[TrainingResult] = []
        slots = self._with(min(len(jobs), self._most), sizes)
        for first in range(0, len(jobs), max(1, len(slots))):
            pairs = list(zip(slots, asked[first : first + len(slots)], strict=False))
            for slot, (job, batches) in pairs:
                slot.begin(job, batches)
            for step in range(max(batches.sizes.size for _, (_, batches) in pairs)):
                for slot, (_, batches) in pairs:
                    if step < batches.sizes.size:
                        slot.step(int(batches.sizes[step]))
            found += [slot.end() for slot, _ in pairs]
        return found

    def _with(self, count: int, sizes: Sequence[int]) -> list["_Slot"]:
        """Return slots that have recorded steps of these sizes, as many as are asked for and fit into memory."""
        while len(self._slots) < count:
            before = _free_bytes(self._device)
            slot = _Slot(self._setup, self._samples, self._device)
            slot.record(sizes)
            self._slots.append(slot)
            took = max(1, before - _free_bytes(self._device))
            fitting = len(self._slots) + int(_FREE * _free_bytes(self._device) / took)
            # Draws inside a model come from one generator of the device, which serves one client at a time.
            self._most = 1 if slot.draws else max(1, min(self._most, fitting))
            count = min(count, self._most)
        for slot in self._slots[:count]:
            slot.record(sizes)
        return self._slots[:count]

    def _check(self) -> None:
        """Refuse a module with a state, or whose recorded step has other bits than the eager one, by standard jobs."""

        def recorded(jobs: Sequence[TrainingJob]) -> list[TrainingResult]:
            try:
                return self._train(jobs)
            except RuntimeError as error:
                raise FedsimError(
                    f"learning.model: CUDA cannot record a step of this module ({error}); allowed with the executor "
                    "'graphs': modules whose steps are the same operations each time; any with 'sequential'"
                ) from error

        check_alike(self._eager.trainer, "graphs", "its recorded step differs from the eager one", recorded)


class _Recorded(NamedTuple):
    """A step on batches of one size: where its rows are read, and its loss and what `Objective.of_samples` needs."""

    start: Callable[[], None]
    rows: Tensor
    left: list[Any]


class _Slot:
    """A module on the device with recorded steps."""

    def __init__(self, setup: TrainingSetup, samples: Samples, device: torch.device) -> None:
        self._trainer, self._samples, self._device = Trainer(setup, str(device)), samples, device
        self._stream: Any = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._pool: Any = None
        self._steps: dict[int, _Recorded] = {}
        self.draws = False

    def record(self, sizes: Sequence[int]) -> None:
        """Record steps on batches of these sizes, the largest first, which share memory."""
        for size in sizes:
            if size not in self._steps:
                self._steps[size] = self._recorded(size)

    def begin(self, job: TrainingJob, batches: Batches) -> None:
        """Take over a client."""
        self._job, self._first_pass, self._place = job, batches.first_pass, 0
        self._losses, self._seen = list[tuple[Tensor, int]](), list[Seen]()
        with self._own_stream():
            self._rows = torch.from_numpy(batches.rows).to(self._device)
            self._trainer.start(job)
            _generator(self._device).manual_seed(batches.seed)

    def step(self, size: int) -> None:
        """Do the next step of the client, on a batch of this size."""
        step = self._steps[size]
        with self._own_stream():
            if self._job.rates is not None:
                self._trainer.set_rate(float(self._job.rates[len(self._losses)]))
            step.rows.copy_(self._rows[self._place : self._place + size])
            step.start()
            self._place += size
            loss, kept = step.left
            self._losses.append((loss.detach().clone(), size))
            if len(self._seen) < self._first_pass:
                self._seen.append(tuple(one.detach().clone() for one in kept))

    def end(self) -> TrainingResult:
        """Return what the client has learned."""
        with self._own_stream():
            losses = torch.stack([loss for loss, _ in self._losses]).tolist()
            counted = [(loss, size) for loss, (_, size) in zip(losses, self._losses, strict=True)]
            return self._trainer.result(self._job, counted, self._seen)

    def _recorded(self, size: int) -> _Recorded:
        rows, left = torch.zeros(size, dtype=torch.int64, device=self._device), list[Any]()
        generator, recorded = _generator(self._device), self._device.type == "cuda"
        self._trainer.flat.module.train()

        def step() -> None:
            left[:] = self._trainer.step(*self._samples.batch(rows))

        with torch_generator(0):
            before = generator.get_state()
            if recorded:
                torch.cuda.synchronize(self._device)
            with self._own_stream():
                for _ in range(_WARM_UPS):
                    step()
            self.draws = self.draws or not torch.equal(generator.get_state(), before)
            if not recorded:
                return _Recorded(step, rows, left)
            torch.cuda.synchronize(self._device)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local"):
                step()
            self._pool = self._pool or graph.pool()
        return _Recorded(graph.replay, rows, left)

    def _own_stream(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)


def _generator(device: torch.device) -> torch.Generator:
    if device.type != "cuda":
        return torch.default_generator
    return torch.cuda.default_generators[device.index or 0]


def _free_bytes(device: torch.device) -> int:
    if device.type != "cuda":
        return 2**40
    torch.cuda.synchronize(device)
    free, _ = torch.cuda.mem_get_info(device)
    return int(free)
