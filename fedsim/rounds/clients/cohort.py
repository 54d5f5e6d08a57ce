"""A cohort that was sent at one instant from one version of the model, and what became of its updates."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray, filled, positions
from fedsim.history.outcomes import NO_VALUE, NOT_CUT, UNDECIDED, Fate, Outcome
from fedsim.learning import Drawn, Model, Update
from fedsim.rounds.clients.participations import Participations
from fedsim.rounds.plan import Plan
from fedsim.selectors import Cohort

_ALL: Final = slice(None)
_DROPPED: Final = int(Outcome.DROPPED)
_WASTED_DROPPED: Final = int(Fate.WASTED_DROPPED)
_WASTED_LATE: Final = int(Fate.WASTED_LATE)


class CohortRun:
    """A dispatched cohort of n clients, in flight or ended.

    ``staleness``, ``used_weight`` and ``served_round`` are those of the aggregation that used an update; `NO_VALUE` or
    0 before. ``work`` is the share of the local work that each client does, and ``silent`` are clients without samples,
    which send a message without bits.
    """

    plan: Plan
    participations: Participations
    any_late = False

    def __init__(
        self,
        order: int,
        number: int,
        cohort: Cohort,
        model: Model,
        weight: FloatArray,
        total: float | None,
        repeat: IntArray,
    ) -> None:
        size = cohort.client.size
        self.order, self.number, self.cohort, self.model = order, number, cohort, model
        self.weight, self.total = weight, total
        self.repeat, self.everyone = repeat, positions(size)
        self.given_up_s = math.inf
        self.asked: IntArray = self.everyone[:0]
        self.together: Sequence[Update] = ()
        self.updates: dict[int, Update] = {}
        self.work = filled(size, 1.0) if cohort.work is None else np.array(cohort.work, dtype=np.float64)
        self.drawn: Drawn | None = None
        self.silent: BoolArray | None = None
        self.fate = np.empty(size, dtype=np.int8)
        self.fate.fill(UNDECIDED)
        self.undecided = self._unrecorded = size
        no, none = np.zeros((2, size), dtype=bool), np.empty((2, size), dtype=np.int64)
        none.fill(NO_VALUE)
        self.late, self._recorded = no[0], no[1]
        self.served_round, self.staleness = none[0], none[1]
        self.used_weight = np.zeros(size)
        self.measured: dict[str, NDArray[np.floating[Any]]] = {}

    @property
    def buffered(self) -> IntArray:
        """Positions of the clients whose updates have arrived and wait for an aggregation."""
        if self.undecided == self.everyone.size and self.participations.all_delivered:
            return self.everyone
        waiting: IntArray = ((self.fate == UNDECIDED) & self.participations.arrived).nonzero()[0]
        return waiting

    def places(self, members: IntArray) -> IntArray | slice:
        """Return what picks members, at distinct positions, out of the columns: for all of them no copy is made."""
        return _ALL if members.size == self.everyone.size else members

    def arrivals(self, members: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the clients of members, and the weights of their updates."""
        places = self.places(members)
        return self.cohort.client[places], self.weight[places]

    def decide(self, members: IntArray, fate: IntArray | int) -> None:
        """Set the fate of members whose fate was not known: one for all, or one for each."""
        self.fate[self.places(members)] = fate
        self.undecided -= members.size

    def decide_lost(self) -> None:
        """Decide the fate of the participations that have ended without an update."""
        if self.participations.all_delivered:
            return
        lost = ((self.fate == UNDECIDED) & (self.plan.cut_in != NOT_CUT)).nonzero()[0]
        # Numbers, not members of an enumeration: NumPy drops an interrupt that comes while it looks at those.
        dropped = self.plan.outcome[lost] == _DROPPED
        self.decide(lost, np.where(dropped, _WASTED_DROPPED, _WASTED_LATE))

    def take_decided(self) -> IntArray:
        """Return the positions of the members whose fate has been decided since the last call."""
        if self.undecided == self._unrecorded:
            return self.everyone[:0]
        if self._unrecorded < self.everyone.size or self.undecided:
            rows: IntArray = ((self.fate != UNDECIDED) & ~self._recorded).nonzero()[0]
        else:
            rows = self.everyone
        self._recorded[self.places(rows)] = True
        self._unrecorded -= rows.size
        return rows

    def duration_s(self, now_s: float) -> FloatArray:
        """Return the seconds for which the server waited for each client.

        The wait ends when the update arrives or the server gives the client up; otherwise it lasts until now.
        """
        members = self.participations
        if members.all_delivered:
            return members.ended_s - members.start_s
        return np.where(members.arrived, members.ended_s, min(now_s, self.given_up_s)) - members.start_s

    def measure(self, members: IntArray, values: dict[str, NDArray[np.floating[Any]]]) -> None:
        for name, column in values.items():
            shape = (self.fate.size, *column.shape[1:])
            self.measured.setdefault(name, np.full(shape, np.nan, dtype=column.dtype))[members] = column


Members = list[tuple[CohortRun, IntArray]]
"""Some clients of some cohorts, by their positions."""
