"""Importance sampling: clients with large updates take part more often and weigh the less for it."""

from typing import Literal

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, PublishedSelector, Reports, RoundView, check_whole, cohort_size
from fedsim.selectors.sampling import data_shares
from fedsim.selectors.validation import check_choice, check_shares


class ImportanceSampling(PublishedSelector):
    """Optimal client sampling by the norms of updates, with m clients on average.

    Client i takes part with the probability of equation (7), which follows ``w_i |U_i|`` (w_i its share of the data,
    U_i its update) and is at most 1, and its update weighs ``w_i`` over that probability, so that the aggregate is an
    unbiased estimate of the one with everybody. In the paper all clients train in each round and send the norm
    before the server draws. Here only the cohort trains: the norm is that of a client's last delivered update.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round on average (m).
    draw : ``"independent"`` or ``"systematic"``
        Each client by itself, as in the paper, so that the number varies; or exactly m, by systematic sampling of the
        candidates in random order (Madow, 1949), with the same probabilities. Where the server asks for a number of
        clients the draw is systematic either way: of more than it asks for the server would drop some.
    weights : ``"unbiased"`` or ``"samples"``
        The paper's, or FedAvg's, which lean towards clients of large updates.
    floor : float in [0, 1]
        Norms below this share of the mean known one are raised to it. A norm that is measured when a client
        takes part only could otherwise keep it out for good. 0 for the paper's formula as it stands.

    Notes
    -----
    Clients whose norm is not known yet count with the largest known one. When independent draws give nobody they are
    made again, and the probabilities in the weights are those given that somebody takes part.
    """

    paper = (
        "Chen, Horvath and Richtarik, Optimal Client Sampling for Federated Learning, Transactions on Machine Learning "
        "Research, 2022, equation (7)"
    )
    needs = ("update_norm",)
    communication = "nothing (the paper's: a model down and a number up for everybody)"

    def __init__(
        self,
        cohort: int,
        draw: Literal["independent", "systematic"] = "independent",
        weights: Literal["unbiased", "samples"] = "unbiased",
        floor: float = 0.1,
    ) -> None:
        check_whole("cohort", cohort, lowest=1)
        check_choice("draw", draw, "independent", "systematic")
        check_choice("weights", weights, "unbiased", "samples")
        check_shares(floor=floor)
        self.cohort, self.draw, self.weights, self.floor = cohort, draw, weights, floor
        self._norm: FloatArray = np.zeros(0)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return whoever was drawn, with the weights of an unbiased aggregate."""
        size = cohort_size(view, self.cohort)
        if not size:
            return Cohort(view.client.copy())
        share = data_shares(view)
        chance = optimal_probabilities(share * self.norms(view), size)
        by_itself = self.draw == "independent" and view.wanted is None
        chosen, given = _independent(chance, rng) if by_itself else _systematic(chance, rng)
        weights = share[chosen] * given / chance[chosen]
        prescribed = weights if self.weights == "unbiased" and weights.any() else None
        return Cohort(view.client[chosen], weights=prescribed)

    def observe(self, reports: Reports) -> None:
        """Remember the norms of delivered updates."""
        norm = reports.measured.get("update_norm", np.full(reports.client.size, np.nan))
        known = reports.delivered & np.isfinite(norm)
        self._make_room(int(reports.client.max(initial=-1)) + 1)
        self._norm[reports.client[known]] = norm[known]

    def norms(self, view: RoundView) -> FloatArray:
        """Return the norm that each candidate counts with; 1 for all as long as none is known."""
        self._make_room(view.clients)
        known = self._norm[~np.isnan(self._norm)]
        if not known.any():
            return np.ones(view.client.size)
        norm = self._norm[view.client]
        return np.asarray(np.maximum(np.where(np.isnan(norm), known.max(), norm), self.floor * known.mean()))

    def _make_room(self, clients: int) -> None:
        if clients > self._norm.size:
            self._norm = np.pad(self._norm, (0, clients - self._norm.size), constant_values=np.nan)


def optimal_probabilities(norm: FloatArray, expected: int) -> FloatArray:
    """Return the probabilities of equation (7), which minimise the variance of the aggregate.

    With norms in rising order and S_l the sum of the first l, the n - l largest are certain to take part and the others
    share the rest, ``(m + l - n) norm / S_l``, where l is the largest number with ``(m + l - n) norm_l <= S_l``.

    Parameters
    ----------
    norm : array of shape (n,), at least 0
        Weighted norms of the updates.
    expected : int from 1 to n, the paper's m

    Returns
    -------
    array of shape (n,), in [0, 1], of sum m
    """
    n, order = norm.size, np.argsort(norm, kind="stable")
    rising = norm[order]
    total = np.cumsum(rising)
    spots = expected - n + np.arange(1, n + 1)
    last = int(np.flatnonzero((spots > 0) & (spots * rising <= total * (1 + 1e-12)))[-1])
    chance = np.ones(n)
    if total[last] > 0:
        chance[order[: last + 1]] = np.minimum(spots[last] * rising[: last + 1] / total[last], 1.0)
    else:
        chance[order[: last + 1]] = spots[last] / (last + 1)
    return chance


def _independent(chance: FloatArray, rng: np.random.Generator) -> tuple[IntArray, float]:
    """Return positions, each drawn by itself, and the probability that it is anybody at all."""
    chosen = np.flatnonzero(rng.random(chance.size) < chance)
    while not chosen.size:
        chosen = np.flatnonzero(rng.random(chance.size) < chance)
    return chosen, float(-np.expm1(np.log1p(-np.minimum(chance, 1 - 1e-16)).sum()))


def _systematic(chance: FloatArray, rng: np.random.Generator) -> tuple[IntArray, float]:
    """Return as many positions as the probabilities add up to: where equal steps from a random start fall."""
    shuffled = rng.permutation(chance.size)
    ends = np.cumsum(chance[shuffled])
    steps = (rng.random() + np.arange(round(float(ends[-1])))) / round(float(ends[-1])) * ends[-1]
    places = np.unique(np.searchsorted(ends, steps, side="right"))
    return np.sort(shuffled[np.minimum(places, chance.size - 1)]), 1.0
