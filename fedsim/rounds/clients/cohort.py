"""A cohort that was sent at one instant, from one version of the model, and what became of its updates."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.history.outcomes import UNDECIDED, Fate, Outcome
from fedsim.learning import Model, Release, Update
from fedsim.rounds.clients.participation import Participations
from fedsim.selectors import Cohort


class CohortRun:
    """A cohort on its way or done.

    Parameters
    ----------
    order : how many cohorts its server has sent before
    number : round in which it is sent
    cohort : who
    model : what the clients start from
    weight : array of shape (n,), aggregation weight of each before staleness and scaling
    total : what the weights of a whole cohort add up to

    Attributes
    ----------
    repeat : array of shape (n,), how often each client has sent an update that began with the same version before
    participations : their processes, times and bits; set when they are sent
    given_up_s : when the server stopped waiting for it; inf before
    updates : handles of those that have arrived, by position, made when they are first needed
    releases : release of every member whose upload has started, by position in the cohort
    work : array of shape (n,), share of the local work that each does
    fate : array of shape (n,) of `Fate`, `UNDECIDED` as long as nothing has come of it
    late : array of shape (n,), whose round was over before it delivered
    served_round : array of shape (n,), round whose aggregate an update went into; -1 for none
    staleness : array of shape (n,), aggregations between the start of a client and the use of its update; -1 for none
    merged_weight : array of shape (n,), weight with which an update was merged; 0 if it was not
    measured : what was measured of the updates that arrived, by name; NaN for the others
    taken_down : array of shape (n,), who stands in the history
    """

    participations: Participations

    def __init__(
        self,
        order: int,
        number: int,
        cohort: Cohort,
        model: Model,
        weight: NDArray[np.float64],
        total: float,
    ) -> None:
        size = cohort.client.size
        self.order, self.number, self.cohort, self.model = order, number, cohort, model
        self.weight, self.total = weight, total
        self.repeat = np.zeros(size, dtype=np.int64)
        self.given_up_s = math.inf
        self.updates: dict[int, Update] = {}
        self.releases: dict[int, Release] = {}
        self.work = np.ones(size) if cohort.work is None else np.array(cohort.work, dtype=np.float64)
        self.fate = np.full(size, UNDECIDED, dtype=np.int8)
        self.late = np.zeros(size, dtype=bool)
        self.served_round = np.full(size, -1)
        self.staleness = np.full(size, -1)
        self.merged_weight = np.zeros(size)
        self.measured: dict[str, NDArray[np.floating[Any]]] = {}
        self.taken_down = np.zeros(size, dtype=bool)

    @property
    def waiting(self) -> NDArray[np.int64]:
        """Positions of the members whose updates have arrived and wait to be merged."""
        return np.flatnonzero((self.fate == UNDECIDED) & self.participations.arrived)

    @property
    def settled(self) -> bool:
        """Whether it is known of everybody what came of it."""
        return not (self.fate == UNDECIDED).any()

    def decide_lost(self) -> None:
        """Settle what comes of those that have ended without an update."""
        there = self.participations
        lost = (self.fate == UNDECIDED) & there.ended & ~there.arrived
        self.fate[lost] = np.where(there.outcome[lost] == Outcome.DROPPED, Fate.WASTED_DROPPED, Fate.WASTED_LATE)

    def duration_s(self, now_s: float) -> NDArray[np.float64]:
        """Return how long the server waited for each: until its update arrived or it was given up, or until now."""
        there = self.participations
        return np.where(there.arrived, there.ended_s, min(now_s, self.given_up_s)) - there.start_s

    def measure(self, members: NDArray[np.int64], values: dict[str, NDArray[np.floating[Any]]]) -> None:
        """Keep what was measured of some members' updates."""
        for name, column in values.items():
            shape = (self.fate.size, *column.shape[1:])
            self.measured.setdefault(name, np.full(shape, np.nan, dtype=column.dtype))[members] = column


def cohort_weights(cohort: Cohort, samples: NDArray[np.int64]) -> tuple[NDArray[np.float64], float]:
    """Return the aggregation weight of each member of a cohort, and what those of a whole cohort shall add up to.

    Without weights of the selector's these are FedAvg's (PAUSE, equation 2): samples times draws, draws alone where
    no samples are known, to be scaled to 1. Weights that a selector prescribes are scaled so that those that
    delivered carry the whole cohort's weight.
    """
    draws = np.ones(samples.size) if cohort.draws is None else np.asarray(cohort.draws, dtype=np.float64)
    if cohort.weights is None:
        return (draws * samples if samples.any() else draws), 1.0
    prescribed = np.asarray(cohort.weights, dtype=np.float64)
    return prescribed, float(prescribed.sum())


Members = list[tuple[CohortRun, NDArray[np.int64]]]
"""Some members of some cohorts, by their positions."""
