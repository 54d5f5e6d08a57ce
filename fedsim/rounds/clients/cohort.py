"""A cohort that was sent at one instant from one version of the model, and what became of its updates."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray, filled
from fedsim.history.outcomes import NO_VALUE, UNDECIDED, Fate, Outcome
from fedsim.learning import Drawn, Model, Release, Update
from fedsim.privacy import PrivacyAccountant
from fedsim.rounds.clients.participation import Participations
from fedsim.selectors import Cohort

_ALL: Final = slice(None)


class CohortRun:
    """A dispatched cohort of n clients, in flight or ended.

    Parameters
    ----------
    order : number of cohorts that the server sent before
    number : round in which the cohort is sent
    cohort : the selector's answer
    model : model that the clients start from
    weight : aggregation weight of each client before staleness and scaling, shape (n,)
    total : sum to which the weights of a whole cohort are scaled; None for weights that are used as they are
    repeat : updates that each client sent before from the same version of the model, shape (n,)

    Attributes
    ----------
    participations : waits, times and bits of the clients; set by the dispatch
    given_up_s : instant at which the server stopped waiting for the cohort; inf before
    asked, together : positions whose updates were asked for first, and the handles of these; none after others were
    updates : handles of arrived updates by position in the cohort, but for those in ``together``
    releases : privacy releases of the updates whose uploads have started, by position in the cohort
    number_releases : those of the numbers sent beside them
    spent : epsilon that each of these clients had spent with its release, by position in the cohort
    work : share of the local work that each client does, shape (n,); falls if a client shortens its work
    level : place of the width that each client trains among those of the learner, shape (n,); None for the whole model
    drawn : samples that the clients have drawn to work on; None for all of their own
    silent : clients that have drawn none and send a message without bits, shape (n,); None for none
    everyone : positions of all members, 0..n-1
    fate : `Fate` of each update, `UNDECIDED` before it is known, shape (n,)
    undecided : number of updates whose fate is not known
    late : whether the round was over before the client delivered, shape (n,)
    served_round : round whose aggregation used the update, `NO_VALUE` for none, shape (n,)
    staleness : aggregations between the start of a client and the use of its update, `NO_VALUE` for none, shape (n,)
    used_weight : weight of the update in the aggregation, 0 for an update that was not used, shape (n,)
    measured : measurements of the arrived updates by name, NaN for the other clients, each of shape (n, ...)
    """

    participations: Participations

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
        self.repeat, self.everyone = repeat, _positions(size)
        self.given_up_s = math.inf
        self.asked: IntArray = self.everyone[:0]
        self.together: Sequence[Update] = ()
        self.updates: dict[int, Update] = {}
        self.releases: dict[int, Release] = {}
        self.number_releases: dict[int, Release] = {}
        self.spent: dict[int, float] = {}
        self.work = filled(size, 1.0) if cohort.work is None else np.array(cohort.work, dtype=np.float64)
        self.level: IntArray | None = None
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

    def charged(self, members: IntArray) -> FloatArray:
        """Return the epsilon that members' uploads were charged, 0 before they start; positions of shape (m,)."""
        kept = self.releases, self.number_releases
        return np.array([sum(of[i].epsilon for of in kept if i in of) for i in members.tolist()], dtype=np.float64)

    def charge(self, accountant: PrivacyAccountant, numbers: bool, i: int) -> None:
        """Charge the client at a position for its upload, which starts now.

        Parameters
        ----------
        accountant : of the run
        numbers : whether the selector asks for numbers beside updates
        i : position in the cohort
        """
        client = int(self.cohort.client[i])
        self.releases[i] = Release(*accountant.charge(client))
        if numbers and accountant.numbers_share:
            self.number_releases[i] = Release(*accountant.charge_numbers(client))
        self.spent[i] = float(accountant.spent[client])

    def decide(self, members: IntArray, fate: IntArray | int) -> None:
        """Set the fate, one for all or one for each, of members whose fate was not known; positions of shape (m,)."""
        self.fate[self.places(members)] = fate
        self.undecided -= members.size

    def decide_lost(self) -> None:
        """Decide the fate of the participations that have ended without an update."""
        members = self.participations
        if members.all_delivered:
            return
        lost = ((self.fate == UNDECIDED) & members.ended & ~members.arrived).nonzero()[0]
        dropped = members.outcome[lost] == Outcome.DROPPED
        self.decide(lost, np.where(dropped, Fate.WASTED_DROPPED, Fate.WASTED_LATE))

    def take_decided(self) -> IntArray:
        """Return the positions of the members whose fate has been decided since the last call, shape (m,)."""
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
        """Return the seconds for which the server waited for each client, shape (n,).

        The wait ends when the update arrives or the server gives the client up; otherwise it lasts until now.
        """
        members = self.participations
        if members.all_delivered:
            return members.ended_s - members.start_s
        return np.where(members.arrived, members.ended_s, min(now_s, self.given_up_s)) - members.start_s

    def measure(self, members: IntArray, values: dict[str, NDArray[np.floating[Any]]]) -> None:
        """Keep measurements of updates.

        Parameters
        ----------
        members : positions of m clients in the cohort, shape (m,)
        values : measurements by name, each of shape (m, ...)
        """
        for name, column in values.items():
            shape = (self.fate.size, *column.shape[1:])
            self.measured.setdefault(name, np.full(shape, np.nan, dtype=column.dtype))[members] = column


@lru_cache(maxsize=16)
def _positions(size: int) -> IntArray:
    """Return 0..size-1, which all cohorts of a size share."""
    positions = np.arange(size)
    positions.flags.writeable = False
    return positions


Members = list[tuple[CohortRun, IntArray]]
"""Some clients of some cohorts, by their positions."""
