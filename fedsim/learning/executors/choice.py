"""The kinds of executors, and which one computes a run: the caller or the environment says so, never the scenario."""

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Self, cast, get_args

from pydantic_core import PydanticCustomError

from fedsim.arrays import IntArray
from fedsim.errors import ContractError, FedsimError
from fedsim.learning.executors.contracts import EXECUTOR, SEQUENTIAL, Executor, Expected, Precision, TrainingSetup
from fedsim.learning.sizes import ExecutorUsed
from fedsim.registry import Registry

AUTO: Final = "auto"
"""The kind that stands for the one with the least estimated time."""
PROCESSES: Final = "processes"
STACKED: Final = "stacked"
GRAPHS: Final = "graphs"
RAY: Final = "ray"

EXECUTORS: Final = Registry(
    "executor",
    "fedsim.executors",
    ("train", "evaluate"),
    {
        AUTO: "fedsim.learning.executors.auto:AutoExecutor",
        SEQUENTIAL: "fedsim.learning.executors.sequential:SequentialExecutor",
        PROCESSES: "fedsim.learning.executors.processes:ProcessesExecutor",
        GRAPHS: "fedsim.learning.executors.graphs:GraphsExecutor",
        STACKED: "fedsim.learning.executors.stacked.executor:StackedExecutor",
        RAY: "fedsim.learning.executors.on_ray:RayExecutor",
    },
    default=AUTO,
)

ENVIRONMENT_VARIABLE: Final = "FEDSIM_EXECUTOR"
"""Names the executor of runs that name none themselves."""

DEVICE_VARIABLE: Final = "FEDSIM_DEVICE"
"""Names the device of runs that name none themselves."""

MakeExecutor = Callable[[TrainingSetup, str], Executor]


@dataclass(frozen=True)
class ExecutorChoice:
    executor: str | MakeExecutor = SEQUENTIAL
    device: str = "cpu"
    precision: Precision = "float32"
    fast: bool = False
    cohort: int | None = None
    rounds: int | None = None

    @classmethod
    def of(
        cls,
        executor: str | MakeExecutor | None = None,
        device: str | None = None,
        precision: Precision = "float32",
        fast: bool = False,
    ) -> Self:
        """Return the choice of a caller, or with None that of the environment, or else ``"auto"`` on the CPU."""
        if precision not in get_args(Precision):
            raise FedsimError(
                f"precision: {precision!r} is not allowed; it must be one of {', '.join(get_args(Precision))}"
            )
        chosen = executor or os.environ.get(ENVIRONMENT_VARIABLE) or AUTO
        if isinstance(chosen, str) and ":" not in chosen and chosen not in EXECUTORS.builtin:
            _load(chosen)
        named = device or os.environ.get(DEVICE_VARIABLE) or (AUTO if chosen == AUTO else "cpu")
        return cls(chosen, named, precision, fast)

    @classmethod
    def again(cls, used: ExecutorUsed) -> Self:
        """Return the choice of an executor that a run has recorded."""
        return cls.of(used.kind, used.device, cast(Precision, used.precision), used.fast)

    def build(self, setup: TrainingSetup) -> Executor:
        return self.prepare(setup)[0]

    def prepare(self, setup: TrainingSetup, samples: IntArray | None = None) -> tuple[Executor, ExecutorUsed]:
        """Return a fresh executor, and its description."""
        make = _load(self.executor) if isinstance(self.executor, str) else self.executor
        expected = None
        if samples is not None and self.rounds is not None:
            expected = Expected(samples, self.cohort or len(samples), self.rounds)
        made: Executor = make(replace(setup, precision=self.precision, fast=self.fast, expected=expected), self.device)
        kind, device = self.kind, self.device
        if kind == AUTO:
            chosen = cast(Any, made)  # which says so of the one that it has chosen
            kind, device, made = chosen.kind, chosen.device, chosen.executor
        name, fingerprint, most = type(made).__name__, cast(object, made.fingerprint), cast(object, made.max_batch)
        if not (isinstance(fingerprint, str) and fingerprint):
            raise ContractError(f"{name}.fingerprint: {fingerprint!r} is not allowed; it must be a text")
        if not (isinstance(most, int) and most >= 1):
            raise ContractError(f"{name}.max_batch: {most!r} is not allowed; it must be at least 1")
        made = EXECUTOR.checked(made, executor=EXECUTOR.name_of(made))
        return made, ExecutorUsed(kind, device, self.precision, fingerprint, self.fast)

    @property
    def kind(self) -> str:
        """Name of the executor; of a callable its place, ``"module:Class"``."""
        if isinstance(self.executor, str):
            return self.executor
        owner = (
            self.executor if inspect.isroutine(self.executor) or inspect.isclass(self.executor) else type(self.executor)
        )
        return f"{owner.__module__}:{owner.__qualname__}"


def _load(kind: str) -> MakeExecutor:
    try:
        return EXECUTORS.load(kind)
    except PydanticCustomError as error:
        raise FedsimError(f"executor: {error.message()}") from None
