"""DivFL: the cohort whose updates represent the updates of all clients best."""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, Reports, RoundView
from fedsim.selectors.in_flight import InFlight
from fedsim.selectors.noise import Noise
from fedsim.selectors.options import Count
from fedsim.selectors.sampling import CohortSelector
from fedsim.selectors.update_distances import UpdateDistances

_BATCH: Final = 32
_MOST: Final = 256


@dataclass(eq=False, repr=False)
class DivFl(CohortSelector):
    """Select the m clients that minimise the sum over all clients of the distance to the nearest selected one.

    The distance is the Euclidean distance of updates, the objective is facility location (equation 4), and the choice
    is greedy (equation 5), which for this submodular function reaches a factor 1 - 1/e of the optimum.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round; all candidates if there are no more than that.
    start : ``"everybody"``, ``"in-turn"`` or ``"zero"``
        Source of the first updates. All candidates take part in the first round, in which the published code collects
        the gradients of all clients; or clients that were never selected come first, a cohort at a time; or neither.
        The update of a client is zero until it delivers.
    refresh_every : int >= 1 or None
        Period in rounds after which all candidates take part; 1 is full participation. None for the paper's variant
        without overhead, in which an update is as old as its client's last participation.
    subset : int >= 1 or None
        Number of candidates, drawn anew, that each step compares (stochastic greedy). None for all of them.
    weights : ``"samples"`` or ``"represented"``
        Aggregation weights: samples, as in the published code; or the number of clients that each member represents,
        the gamma of equation 2.
    noise : ``"as-sent"`` or ``"corrected"``
        Whether the noise of privacy that is expected in distances is taken from them (`UpdateDistances`). As sent, the
        noisiest updates are the farthest from all others, and their clients are selected.

    Notes
    -----
    The paper's other variant, in which all clients compute a gradient of the current model before each selection,
    costs a round with all clients each time; see ``refresh_every``. Candidates and clients with a delivered update are
    represented; only candidates are selected. At an asynchronous server, which replaces clients one by one, clients in
    flight count as selected. Ties are broken at random. Time and memory grow with the square of the number of clients;
    greedy steps are lazy, with bounds from earlier steps.
    """

    paper = (
        "Balakrishnan, Li, Zhou, Himayat, Smith and Bilmes, Diverse Client Selection for Federated Learning via "
        "Submodular Maximization, ICLR 2022"
    )
    needs = ("update", "noise_energy")
    communication = "a round with all clients at the start"

    start: Literal["everybody", "in-turn", "zero"] = "everybody"
    refresh_every: Count | None = None
    subset: Count | None = None
    weights: Literal["samples", "represented"] = "samples"
    noise: Noise = "as-sent"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._distances = UpdateDistances("euclidean", self.noise)
        self._in_flight = InFlight()
        self._rounds, self._round = 0, -1

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size = self.cohort_size(view)
        if not size:
            return Cohort(view.client[:0])
        self._in_flight.meet(view)
        cohort = Cohort(view.client.copy()) if self._collects(view.round) else self._representatives(view, size, rng)
        self._in_flight.sent(cohort.client)
        return cohort

    def observe(self, reports: Reports) -> None:
        self._in_flight.heard(reports)
        self._distances.learn(reports)

    def _collects(self, round_: int) -> bool:
        self._rounds += round_ != self._round
        self._round = round_
        if self._rounds == 1 and self.start == "everybody":
            return True
        return self.refresh_every is not None and (self._rounds - 1) % self.refresh_every == 0

    def _representatives(self, view: RoundView, size: int, rng: np.random.Generator) -> Cohort:
        """Return the candidates that, together with the clients in flight, represent all clients best."""
        fresh = np.zeros(view.client.size, dtype=bool)
        if self.start == "in-turn":
            fresh = ~self._distances.known(view.client) & (view.participations == 0)
        forced, others = view.client[fresh], self._distances.sorted(view.client[~fresh])
        if forced.size >= size:
            return Cohort(np.sort(rng.choice(forced, size, replace=False)))
        crowd = self._distances.sorted(np.union1d(self._distances.heard, view.client))
        distance = self._distances.between(others, crowd)
        running = self._in_flight.client
        nearest = self._distances.between(running, crowd).min(axis=0) if running.size else None
        chosen = facility_location(distance, size - forced.size, rng, self.subset, nearest)
        weight = np.concatenate([_represented(distance[chosen]), np.ones(forced.size)])
        client = np.concatenate([others[chosen], forced])
        order = np.argsort(client)
        represented = weight[order] / weight.sum() if self.weights == "represented" else None
        return Cohort(client[order], weights=represented)


def facility_location(
    distance: FloatArray,
    size: int,
    rng: np.random.Generator,
    subset: int | None = None,
    nearest: FloatArray | None = None,
) -> IntArray:
    """Return the rows of a greedy choice that minimises the sum over columns of the least distance to chosen rows.

    The gain of a row never grows. So its gain in an earlier step is a bound, and only rows with a large bound are
    computed again, a batch at a time (lazy greedy); the answer is that of plain greedy choice.
    """
    rows, columns = distance.shape
    priority = rng.permutation(rows)
    farthest = float(distance.max(initial=0.0))
    fresh = subset is None and nearest is None
    bound = columns * farthest - distance.sum(axis=1) if fresh else np.full(rows, np.inf)
    nearest = np.full(columns, farthest) if nearest is None else nearest
    chosen: list[int] = []
    for step in range(size):
        free = np.flatnonzero(bound > -np.inf)
        if subset is not None and subset < free.size:
            free = np.sort(rng.choice(free, subset, replace=False))
        # Before the first choice the sums of distances are the gains themselves.
        best = _best_gain(distance, nearest, bound, priority, free, exact=not step and fresh)
        nearest = np.minimum(nearest, distance[best])
        bound[best] = -np.inf
        chosen.append(best)
    return np.array(chosen, dtype=np.int64)


def _best_gain(
    distance: FloatArray, nearest: FloatArray, bound: FloatArray, priority: IntArray, free: IntArray, *, exact: bool
) -> int:
    """Return the free row of greatest gain, ties by priority; bounds that were computed again are updated in place."""
    order = free[np.argsort(-bound[free], kind="stable")]
    best, gain, count = -1, -np.inf, _BATCH
    while order.size and bound[order[0]] >= gain:
        batch, order = order[:count], order[count:]
        if not exact:
            bound[batch] = np.maximum(nearest - distance[batch], 0.0).sum(axis=1)
        top = float(bound[batch].max())
        equal = batch[bound[batch] == top]
        first = int(equal[priority[equal].argmin()])
        if top > gain or (top == gain and priority[first] < priority[best]):
            best, gain = first, top
        count = min(2 * count, _MOST)
    return best


def _represented(distance: FloatArray) -> FloatArray:
    """Return the number of columns to which each row is the nearest, shape (rows,)."""
    if not distance.size:
        return np.ones(len(distance))
    return np.bincount(distance.argmin(axis=0), minlength=len(distance)).astype(np.float64)
