"""A cohort that was sent at one instant from one version of the model, and what became of its updates."""

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray, filled, positions, same
from fedsim.history.outcomes import NO_VALUE, NOT_CUT, UNDECIDED, Fate, Outcome
from fedsim.learning import Model, Update
from fedsim.rounds.clients.participations import Participations
from fedsim.rounds.plan import Plan
from fedsim.selectors import Cohort

_ALL: Final = slice(None)
_NOBODY: Final = positions(0)
_DROPPED: Final = int(Outcome.DROPPED)
_WASTED_DROPPED: Final = int(Fate.WASTED_DROPPED)
_WASTED_LATE: Final = int(Fate.WASTED_LATE)


class Decided(NamedTuple):
    """What has become of updates; each an array of shape (n,), or one number for all members."""

    fate: Any
    used_weight: Any
    served_round: Any
    staleness: Any


_OPEN: Final = Decided(UNDECIDED, 0.0, NO_VALUE, NO_VALUE)
_TYPES: Final = np.int8, np.float64, np.int64, np.int64


class CohortRun:
    """A dispatched cohort of n clients, in flight or ended.

    ``staleness``, ``used_weight`` and ``served_round`` are those of the aggregation that used an update; `NO_VALUE` or
    0 before. ``work`` is the share of the local work that each client does. ``weight`` and ``total`` are those of
    `fedsim.rounds.aggregation.weightings.cohort_weights`.
    """

    plan: Plan
    participations: Participations
    weight: FloatArray
    total: float | None
    late: BoolArray
    any_late = False
    given_up_s = math.inf
    asked: IntArray = _NOBODY
    together: Sequence[Update] = ()
    decided = _OPEN
    _apart = False  # whether what was decided are arrays of this cohort

    def __init__(self, order: int, number: int, cohort: Cohort, model: Model, repeat: IntArray) -> None:
        size = cohort.client.size
        self.order, self.number, self.cohort, self.model = order, number, cohort, model
        self.repeat, self.everyone = repeat, positions(size)
        self.updates: dict[int, Update] = {}
        self.work = filled(size, 1.0) if cohort.work is None else np.array(cohort.work, dtype=np.float64)
        self.undecided = self._unrecorded = size
        self.measured: dict[str, NDArray[np.floating[Any]]] = {}

    @property
    def fate(self) -> NDArray[np.int8]:
        column: NDArray[np.int8] = self.each().fate
        return column

    @property
    def used_weight(self) -> FloatArray:
        column: FloatArray = self.each().used_weight
        return column

    @property
    def served_round(self) -> IntArray:
        column: IntArray = self.each().served_round
        return column

    @property
    def staleness(self) -> IntArray:
        column: IntArray = self.each().staleness
        return column

    def each(self) -> Decided:
        """Return what has become of each update, as arrays that take changes."""
        if not self._apart:
            columns = [np.empty(self.everyone.size, dtype=kind) for kind in _TYPES]
            for column, value in zip(columns, self.decided, strict=True):
                column[:] = value
            self.decided, self._apart = Decided(*columns), True
        return self.decided

    @property
    def all_in_time(self) -> bool:
        """Whether all members have delivered, none of them late."""
        return not self.any_late and self.participations.all_delivered

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

    def late_of(self, members: IntArray) -> BoolArray:
        return self.late[self.places(members)] if self.any_late else same(False, members.size)

    def mark_late(self) -> None:
        """Mark the members that have not delivered as late: their round is over."""
        self.late, self.any_late = ~self.participations.arrived, True
        self.participations.mark_late()

    def decide(self, members: IntArray, fate: IntArray | int) -> None:
        """Set the fate of members whose fate was not known: one for all, or one for each."""
        self.each().fate[self.places(members)] = fate
        self.undecided -= members.size

    def use(
        self, members: IntArray, fate: IntArray | int, weight: FloatArray, number: IntArray | int, age: IntArray | int
    ) -> None:
        """Note the fate of members' updates in the aggregation of a round, their weights there and their staleness."""
        if members.size == self.everyone.size and not self._apart:
            self.decided = Decided(fate, weight, number, age)
        else:
            places, each = self.places(members), self.each()
            each.fate[places], each.used_weight[places] = fate, weight
            each.served_round[places], each.staleness[places] = number, age
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
        size = self.everyone.size
        if self.undecided == self._unrecorded:
            return _NOBODY
        if self.undecided or self._unrecorded < size:
            if self._unrecorded == size:
                self._recorded = np.zeros(size, dtype=bool)
            rows: IntArray = ((self.fate != UNDECIDED) & ~self._recorded).nonzero()[0]
            self._recorded[rows] = True
        else:
            rows = self.everyone
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
            shape = (self.everyone.size, *column.shape[1:])
            self.measured.setdefault(name, np.full(shape, np.nan, dtype=column.dtype))[members] = column


Members = list[tuple[CohortRun, IntArray]]
"""Some clients of some cohorts, by their positions."""
