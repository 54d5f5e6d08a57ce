"""Trials of a selector: crowds, possible outcomes of their clients, and the selector's answers."""

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
    """One crowd and one kind of server.

    Attributes
    ----------
    name : of the trial, for messages
    clients : size of the crowd
    present, delivering, answering : probabilities per client and round
    idle_every : period of rounds without candidates; 0 for none
    silent_every : period of rounds without answers to a probe; 0 for none
    feedback : whether the server reports outcomes
    samples : whether clients have data
    learning : whether updates have losses and values
    budget : privacy budget; None for a run without privacy
    features : number of declared features
    wanted : number of clients that the server asks for, in turn
    asynchronous : whether the server selects while clients are in flight
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
class Outcomes:
    """Outcome of each client in one round if it is selected; arrays have shape (K, ...).

    ``away_s`` is the time after the start at which the client leaves, in seconds.
    """

    delivers: BoolArray
    duration_s: FloatArray
    loss: FloatArray
    update: NDArray[np.float32]
    answers: BoolArray
    away_s: FloatArray

    def reversed(self) -> "Outcomes":
        """Return different outcomes, for false reports."""
        return replace(
            self,
            delivers=~self.delivers,
            duration_s=self.duration_s[::-1] + 1.0,
            loss=self.loss[::-1],
            update=self.update[::-1],
        )


@dataclass(frozen=True)
class Answered:
    """The answers of a selector in one round."""

    probe: Probe | None
    cohort: Cohort


def locked(record: Any) -> Any:
    """Return a record of arrays that cannot be written, even after a change of their flags."""
    if isinstance(record, np.ndarray):
        # NumPy's permutation refuses an empty read-only array.
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


def global_random_state() -> tuple[object, ...]:
    """Return the states of the global random generators, to find out whether they were used."""
    state = np.random.get_state(legacy=False)["state"]  # noqa: NPY002 - read, not drawn from
    return random.getstate(), state["key"].tobytes(), state["pos"]
