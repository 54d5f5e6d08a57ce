"""The crowds that a selector has to cope with, their weather, and what it answers."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray
from fedsim.selectors import Cohort, Probe


@dataclass(frozen=True)
class Trial:
    """One crowd that a selector has to cope with.

    ``present``, ``delivering`` and ``answering`` are probabilities per client and round; ``idle_every`` gives each so
    many rounds one without candidates, ``silent_every`` one in which nobody answers a probe. ``wanted`` is what the
    server asks for, round after round.
    """

    name: str
    clients: int
    present: float = 1.0
    delivering: float = 0.8
    answering: float = 0.7
    idle_every: int = 0
    silent_every: int = 4
    feedback: bool = True
    samples: bool = True
    learning: bool = True
    budget: float | None = 10.0
    features: int = 0
    wanted: tuple[int | None, ...] = (None,)
    asynchronous: bool = False


@dataclass(frozen=True)
class Weather:
    """What would happen to each client in one round; ``away_s`` is when it leaves after the start."""

    delivers: BoolArray
    duration_s: FloatArray
    loss: FloatArray
    update: NDArray[np.float32]
    answers: BoolArray
    away_s: FloatArray

    def turned_around(self) -> "Weather":
        """Return another weather, to be lied about."""
        return replace(
            self,
            delivers=~self.delivers,
            duration_s=self.duration_s[::-1] + 1.0,
            loss=self.loss[::-1],
            update=self.update[::-1],
        )


@dataclass(frozen=True)
class Played:
    """What a selector has answered in one round."""

    probe: Probe | None
    cohort: Cohort


def locked(record: Any) -> Any:
    """Return a record of arrays that cannot be written, not even after setting their flags."""
    if isinstance(record, np.ndarray):
        # NumPy's permutation refuses an empty array that is read-only, and there is nothing to write in it.
        if not record.size:
            return record
        owner = record.copy()
        owner.flags.writeable = False
        return owner.view()
    if isinstance(record, Mapping):
        return {name: locked(value) for name, value in record.items()}
    if is_dataclass(record) and not isinstance(record, type):
        return replace(record, **{field.name: locked(getattr(record, field.name)) for field in fields(record)})
    return record


def global_luck() -> tuple[object, ...]:
    """Return the states of the generators that belong to nobody, to see whether somebody used them."""
    state = np.random.get_state(legacy=False)["state"]  # noqa: NPY002 - looked at, not drawn from
    return random.getstate(), state["key"].tobytes(), state["pos"]
