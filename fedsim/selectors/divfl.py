"""DivFL: the cohort whose updates stand for everybody's.

Balakrishnan, Li, Zhou, Himayat, Smith and Bilmes, "Diverse Client Selection for Federated Learning via Submodular
Maximization", ICLR 2022.
"""

from typing import Final, Literal

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, PublishedSelector, Reports, RoundView, check_whole, cohort_size
from fedsim.selectors.in_flight import InFlight
from fedsim.selectors.update_distances import UpdateDistances
from fedsim.selectors.validation import check_choice, check_wholes

_BATCH: Final = 32
_MOST: Final = 256


class DivFl(PublishedSelector):
    """Choose the m clients that minimise the sum over all clients of the distance to the nearest chosen one.

    The distance is the Euclidean one of updates, the objective that of facility location (equation 4), and the
    choice greedy (equation 5), which for this submodular function is within a factor 1 - 1/e of the best.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round; all candidates if there are no more than that.
    start : ``"everybody"``, ``"in-turn"`` or ``"zero"``
        Where first updates come from. Everybody takes part in the first round, as the published code collects all
        clients' gradients then; or clients that were never selected come first, a cohort at a time; or neither. The
        update of a client that has not delivered yet is zero.
    refresh_every : int >= 1 or None
        Everybody takes part every so many rounds, so that no update is older; 1 is full participation. None for stale
        ones, the paper's variant without overhead: an update is as old as its client's last participation.
    subset : int >= 1 or None
        Stochastic greedy: each step looks at so many candidates, drawn anew. None for all of them.
    weights : ``"samples"`` or ``"represented"``
        Updates are averaged by samples, as the published code does; or by the number of clients that each stands for,
        the gamma of equation 2.

    Notes
    -----
    The paper's other variant, where everybody computes a gradient of the current model before each selection, costs a
    round with everybody each time; here that is what it takes, see ``refresh_every``. All clients that are there
    or were heard from are stood for; only candidates are chosen. At an asynchronous server, which replaces clients
    one by one, those at work count as chosen already. Ties are broken at random. Time and memory grow with the square
    of the number of clients; greedy steps are lazy, with bounds from earlier steps.
    """

    paper = (
        "Balakrishnan, Li, Zhou, Himayat, Smith and Bilmes, Diverse Client Selection for Federated Learning via "
        "Submodular Maximization, ICLR 2022"
    )
    needs = ("update",)
    communication = "a round with everybody at the start"

    def __init__(
        self,
        cohort: int,
        start: Literal["everybody", "in-turn", "zero"] = "everybody",
        refresh_every: int | None = None,
        subset: int | None = None,
        weights: Literal["samples", "represented"] = "samples",
    ) -> None:
        check_whole("cohort", cohort, lowest=1)
        check_choice("start", start, "everybody", "in-turn", "zero")
        check_choice("weights", weights, "samples", "represented")
        check_wholes(1, optional=True, refresh_every=refresh_every, subset=subset)
        self.cohort, self.start, self.refresh_every = cohort, start, refresh_every
        self.subset, self.weights = subset, weights
        self._distances = UpdateDistances("euclidean")
        self._at_work = InFlight()
        self._rounds, self._round = 0, -1

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return everybody when updates are collected, or else the clients that stand for the others best."""
        size = cohort_size(view, self.cohort)
        if not size:
            return Cohort(view.client.copy())
        self._at_work.meet(view)
        cohort = Cohort(view.client.copy()) if self._collects(view.round) else self._representatives(view, size, rng)
        self._at_work.sent(cohort.client)
        return cohort

    def observe(self, reports: Reports) -> None:
        """Remember the delivered updates."""
        self._at_work.heard(reports)
        self._distances.learn(reports)

    def _collects(self, round_: int) -> bool:
        """Return whether everybody takes part in this round."""
        self._rounds += round_ != self._round
        self._round = round_
        if self._rounds == 1 and self.start == "everybody":
            return True
        return self.refresh_every is not None and (self._rounds - 1) % self.refresh_every == 0

    def _representatives(self, view: RoundView, size: int, rng: np.random.Generator) -> Cohort:
        """Return the candidates that stand for everybody best, together with those that are at work already."""
        fresh = np.zeros(view.client.size, dtype=bool)
        if self.start == "in-turn":
            fresh = ~self._distances.known(view.client) & (view.participations == 0)
        forced, others = view.client[fresh], self._distances.sorted(view.client[~fresh])
        if forced.size >= size:
            return Cohort(np.sort(rng.choice(forced, size, replace=False)))
        crowd = self._distances.sorted(np.union1d(self._distances.heard, view.client))
        distance = self._distances.between(others, crowd)
        working = self._at_work.client
        nearest = self._distances.between(working, crowd).min(axis=0) if working.size else None
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
    """Return the rows that greedy choice takes to make the sum of each column's least distance to them small.

    Bounds from earlier steps tell which rows are worth another look (lazy greedy: what a row gains never grows), a
    batch at a time, so that the answer is that of plain greedy choice.

    Parameters
    ----------
    distance : array of shape (c, n), at least 0
    size : int from 0 to c
    rng : generator
        Breaks ties, and draws the subsets.
    subset : int or None
        Each step looks at so many rows only, drawn anew (stochastic greedy).
    nearest : array of shape (n,) or None
        Distance of each column to the nearest of those that are chosen already; None for nobody.

    Returns
    -------
    array of shape (size,), in the order of the choice
    """
    rows, columns = distance.shape
    luck = rng.permutation(rows)
    farthest = float(distance.max(initial=0.0))
    fresh = subset is None and nearest is None
    bound = columns * farthest - distance.sum(axis=1) if fresh else np.full(rows, np.inf)
    nearest = np.full(columns, farthest) if nearest is None else nearest
    chosen: list[int] = []
    for step in range(size):
        free = np.flatnonzero(bound > -np.inf)
        if subset is not None and subset < free.size:
            free = np.sort(rng.choice(free, subset, replace=False))
        # Without anybody chosen, the sums of distances are the gains themselves.
        best = _best_gain(distance, nearest, bound, luck, free, exact=not step and fresh)
        nearest = np.minimum(nearest, distance[best])
        bound[best] = -np.inf
        chosen.append(best)
    return np.array(chosen, dtype=np.int64)


def _best_gain(
    distance: FloatArray, nearest: FloatArray, bound: FloatArray, luck: IntArray, free: IntArray, *, exact: bool
) -> int:
    """Return the free row that shortens distances most, the luckiest among equals; bounds are brought up to date."""
    order = free[np.argsort(-bound[free], kind="stable")]
    best, gain, count = -1, -np.inf, _BATCH
    while order.size and bound[order[0]] >= gain:
        batch, order = order[:count], order[count:]
        if not exact:
            bound[batch] = np.maximum(nearest - distance[batch], 0.0).sum(axis=1)
        top = float(bound[batch].max())
        equal = batch[bound[batch] == top]
        first = int(equal[luck[equal].argmin()])
        if top > gain or (top == gain and luck[first] < luck[best]):
            best, gain = first, top
        count = min(2 * count, _MOST)
    return best


def _represented(distance: FloatArray) -> FloatArray:
    """Return for how many columns each row is the nearest."""
    if not distance.size:
        return np.ones(len(distance))
    return np.bincount(distance.argmin(axis=0), minlength=len(distance)).astype(np.float64)
