"""The executor "auto": the one that trains fastest on this machine.

A run of few trainings gets the first executor that offers its device and precision. For a longer one they are compared
once, before its first training, and the pick is stored in the user's cache.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from fedsim.errors import FedsimError
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.auto import calibration, picks
from fedsim.learning.executors.catalogue import AUTO, CANDIDATES, EXECUTORS
from fedsim.learning.executors.contracts import (
    EvaluationJob,
    Executor,
    Expected,
    TrainingJob,
    TrainingResult,
    TrainingSetup,
)

WORTH_S: Final = 30.0
"""Seconds of training on one thread from which on a comparison is worth its few seconds."""


class AutoExecutor:
    """The fastest of fedsim's executors for these trainings, compared once on each machine.

    Parameters
    ----------
    setup : TrainingSetup
    device : in torch's words

    Attributes
    ----------
    kind : of the executor that was picked
    executor : that executor
    fingerprint, max_batch : of that executor

    Raises
    ------
    FedsimError
        If no executor computes on the device with the precision.
    """

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        self.kind, self.executor = _pick(setup, device)
        self.fingerprint, self.max_batch = self.executor.fingerprint, self.executor.max_batch

    def train(self, jobs: Sequence[TrainingJob]) -> Iterable[TrainingResult]:
        return self.executor.train(jobs)

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> Sequence[Evaluation]:
        return self.executor.evaluate(jobs)


def _pick(setup: TrainingSetup, device: str) -> tuple[str, Executor]:
    expected = setup.expected
    if expected is None or not calibration.is_long(setup, expected, WORTH_S):
        return _first(CANDIDATES, setup, device)
    key = picks.key_of(setup, expected, device)
    if known := picks.read(key, CANDIDATES):
        return _first((known, *CANDIDATES), setup, device)
    return _compared(setup, expected, device, key)


def _first(kinds: Sequence[str], setup: TrainingSetup, device: str) -> tuple[str, Executor]:
    """Return the first executor that offers the device and the precision, with its kind."""
    refused = []
    for kind in kinds:
        try:
            return kind, EXECUTORS.load(kind)(setup, device)
        except FedsimError as error:
            refused.append(f"{kind}: {error}")
    raise FedsimError(
        f"executor: {AUTO!r} finds none for the device {device!r} and the precision {setup.precision!r}\n  "
        + "\n  ".join(refused)
    )


def _compared(setup: TrainingSetup, expected: Expected, device: str, key: picks.Key) -> tuple[str, Executor]:
    """Return the fastest executor, with its kind, and store the pick."""
    built: dict[str, Executor] = {}
    speeds: dict[str, float] = {}
    for kind in CANDIDATES:
        with suppress(FedsimError):
            executor = EXECUTORS.load(kind)(setup, device)
            speeds[kind] = calibration.updates_per_s(executor, setup, expected, max(speeds.values(), default=0.0))
            built[kind] = executor
    if not speeds:
        return _first(CANDIDATES, setup, device)
    pick = picks.keep(key, calibration.fastest(speeds), speeds, CANDIDATES)
    return (pick, built[pick]) if pick in built else _first((pick, *CANDIDATES), setup, device)
