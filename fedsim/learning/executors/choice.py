"""Which executor computes a run: named by the caller or the environment, never by the scenario."""

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Self, cast, get_args

from pydantic_core import PydanticCustomError

from fedsim.arrays import IntArray
from fedsim.errors import ContractError, FedsimError
from fedsim.learning.computing import ExecutorUsed
from fedsim.learning.executors.auto.auto import AutoExecutor
from fedsim.learning.executors.catalogue import AUTO, EXECUTORS
from fedsim.learning.executors.contracts import EXECUTOR, SEQUENTIAL, Executor, Expected, Precision, TrainingSetup

ENVIRONMENT_VARIABLE: Final = "FEDSIM_EXECUTOR"
"""Names the executor of runs that name none themselves."""

DEVICE_VARIABLE: Final = "FEDSIM_DEVICE"
"""Names the device of runs that name none themselves."""

MakeExecutor = Callable[[TrainingSetup, str], Executor]


@dataclass(frozen=True)
class ExecutorChoice:
    """An executor that has not been built yet.

    Attributes
    ----------
    executor : a kind of `EXECUTORS`, ``"module:Class"``, or what makes one of a setup and a device
    device : where it computes, in torch's words: ``"cpu"``, ``"cuda:0"``
    precision : of the arithmetic inside layers, ``"float32"`` or ``"bfloat16"``
    cohort : clients that train at a time; None for all
    rounds : how often they do, if it is known; it is what ``"auto"`` needs to know

    Examples
    --------
    >>> ExecutorChoice("sequential", cohort=20).device
    'cpu'
    >>> ExecutorChoice.of("sequentail")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    fedsim.errors.FedsimError: executor: there is no executor 'sequentail' (did you mean ...
    """

    executor: str | MakeExecutor = SEQUENTIAL
    device: str = "cpu"
    precision: Precision = "float32"
    cohort: int | None = None
    rounds: int | None = None

    @classmethod
    def of(
        cls,
        executor: str | MakeExecutor | None = None,
        device: str | None = None,
        precision: Precision = "float32",
    ) -> Self:
        """Return the choice of a caller, or with None that of the environment, or else ``"auto"`` on the CPU.

        Parameters
        ----------
        executor, device, precision : as the attributes

        Raises
        ------
        FedsimError
            If there is no executor or no precision of that name.
        """
        if precision not in get_args(Precision):
            raise FedsimError(
                f"precision: {precision!r} is not allowed; it must be one of {', '.join(get_args(Precision))}"
            )
        chosen = executor or os.environ.get(ENVIRONMENT_VARIABLE) or AUTO
        if isinstance(chosen, str) and ":" not in chosen and chosen not in EXECUTORS.builtin:
            _load(chosen)
        return cls(chosen, device or os.environ.get(DEVICE_VARIABLE) or "cpu", precision)

    @classmethod
    def again(cls, used: ExecutorUsed) -> Self:
        """Return the choice of an executor that a run has recorded.

        Parameters
        ----------
        used : what the run has recorded of its executor
        """
        return cls.of(used.kind, used.device, cast(Precision, used.precision))

    def build(self, setup: TrainingSetup) -> Executor:
        """Return a fresh executor; raises as `prepare`.

        Parameters
        ----------
        setup : what all jobs of the run have in common
        """
        return self.prepare(setup).executor

    def prepare(self, setup: TrainingSetup, samples: IntArray | None = None) -> "Prepared":
        """Return a fresh executor with its description.

        Parameters
        ----------
        setup : what all trainings have in common
        samples : of every client, shape (K,), if they are known

        Raises
        ------
        FedsimError
            If it cannot be loaded, or not compute on the device.
        ContractError
            If it has no fingerprint or no largest batch.
        """
        make = _load(self.executor) if isinstance(self.executor, str) else self.executor
        expected = None
        if samples is not None and self.rounds is not None:
            expected = Expected(samples, self.cohort or len(samples), self.rounds)
        made: Executor = make(replace(setup, precision=self.precision, expected=expected), self.device)
        kind = self.kind
        if isinstance(made, AutoExecutor):
            kind, made = made.kind, made.executor
        name, fingerprint, most = type(made).__name__, cast(object, made.fingerprint), cast(object, made.max_batch)
        if not (isinstance(fingerprint, str) and fingerprint):
            raise ContractError(f"{name}.fingerprint: {fingerprint!r} is not allowed; it must be a text")
        if not (isinstance(most, int) and most >= 1):
            raise ContractError(f"{name}.max_batch: {most!r} is not allowed; it must be at least 1")
        made = EXECUTOR.checked(made, executor=EXECUTOR.name_of(made))
        return Prepared(made, ExecutorUsed(kind, self.device, self.precision, fingerprint))

    @property
    def kind(self) -> str:
        """Name of the executor; of a callable its place, ``"module:Class"``."""
        if isinstance(self.executor, str):
            return self.executor
        owner = (
            self.executor if inspect.isroutine(self.executor) or inspect.isclass(self.executor) else type(self.executor)
        )
        return f"{owner.__module__}:{owner.__qualname__}"


@dataclass(frozen=True)
class Prepared:
    """A fresh executor, and its description."""

    executor: Executor
    used: ExecutorUsed


def _load(kind: str) -> MakeExecutor:
    try:
        return EXECUTORS.load(kind)
    except PydanticCustomError as error:
        raise FedsimError(f"executor: {error.message()}") from None
