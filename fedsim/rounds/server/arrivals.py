"""The updates that an aggregation takes, as its rule sees them."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.learning import Model, Update
from fedsim.rounds.clients.cohort import Members

T = TypeVar("T", bound=np.generic)


class ReadyUpdates:
    """`Arrivals` of some members of cohorts; columns that only some rules read are made when they are read."""

    def __init__(
        self, members: Members, updates: Sequence[Update], held: BoolArray, version: int, picked: IntArray
    ) -> None:
        self.updates, self.held = updates, held
        self._members, self._version, self._picked = members, version, picked
        self.client: IntArray = joined([run.cohort.client[run.places(part)] for run, part in members])
        self.weight: FloatArray = joined([run.weight[run.places(part)] for run, part in members])
        self.total = members[-1][0].total

    @property
    def base(self) -> Sequence[Model]:
        return [run.model for run, places in self._members for _ in range(places.size)]

    @property
    def staleness(self) -> IntArray:
        return joined([np.full(places.size, self._version - run.model.version) for run, places in self._members])

    @property
    def arrived_s(self) -> FloatArray:
        return joined([run.participations.ended_s[places] for run, places in self._members])

    @property
    def picked_before(self) -> BoolArray:
        return np.isin(self.client, self._picked)


def joined(parts: Sequence[NDArray[T]]) -> NDArray[T]:
    """Return the elements of at least one part, one part after the other."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
