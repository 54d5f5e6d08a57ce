"""Uniform selection: the m participants of a round are drawn at random."""

from typing import Literal

import numpy as np

from fedsim.selectors.contracts import Cohort, PublishedSelector, RoundView, check_whole, cohort_size
from fedsim.selectors.sampling import data_sizes, draw_distinct
from fedsim.selectors.validation import check_choice


class All(PublishedSelector):
    """Take every candidate in every round, as in the papers' "FedAvg, all users" curves.

    It is also how SAFA selects, which lets everybody train and picks among what arrives: with the round policy
    ``{ kind = "safa", max_wait_s = ... }``, by its paper. What REFL compares itself with as SAFA is a reduced form,
    without cache and without compensation of those picked before: everybody there trains, the round ends when a tenth
    has delivered, and what comes later is merged as if it were fresh if it is at most five rounds old. Its settings::

        [selector]
        kind = "all"
        [rounds]
        policy = { kind = "quorum", share = 0.1, max_wait_s = 100.0 }
        late = { kind = "stale", weight = "constant", max_staleness = 5 }
    """

    paper = (
        "McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, "
        "AISTATS 2017, with client fraction C = 1"
    )

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return all candidates; nothing is drawn."""
        return Cohort(view.client.copy())


class Uniform(PublishedSelector):
    """Draw the cohort uniformly without replacement among the candidates.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    """

    paper = (
        "McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, "
        "AISTATS 2017, Algorithm 1"
    )

    def __init__(self, cohort: int) -> None:
        check_whole("cohort", cohort, lowest=1)
        self.cohort = cohort

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return ``cohort`` distinct candidates, each set of them as likely as any other."""
        size = cohort_size(view, self.cohort)
        if view.client.size <= size:
            return Cohort(view.client.copy())
        return Cohort(np.sort(rng.choice(view.client, size=size, replace=False)))


class RoundRobin(PublishedSelector):
    """Take the next m candidates in the order of their ids, and go on where the last round ended.

    Clients that are not there when their turn comes are passed over, and wait for the next time around.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    """

    paper = (
        "Yang, Liu, Quek and Poor, Scheduling Policies for Federated Learning in Wireless Networks, IEEE Transactions "
        "on Communications 68(1), 2020, round robin"
    )

    def __init__(self, cohort: int) -> None:
        check_whole("cohort", cohort, lowest=1)
        self.cohort = cohort
        self._next = 0

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return the next m candidates; nothing is drawn."""
        size = cohort_size(view, self.cohort)
        if not size:
            return Cohort(view.client.copy())
        start = int(np.searchsorted(view.client, self._next))
        chosen = view.client[(start + np.arange(size)) % view.client.size]
        self._next = int(chosen[-1]) + 1
        return Cohort(np.sort(chosen))


class WeightedSampling(PublishedSelector):
    """Draw m distinct clients one after the other, each with probability n_k over the data of those still there.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    weights : ``"equal"`` or ``"samples"``
        How updates are averaged: with 1/m each, since data already had its say in the draw, or by n_k as FedAvg does,
        which counts data twice. Neither is unbiased, as the probability of taking part is not m p_k; MD sampling and
        clustered sampling are.
    """

    paper = (
        "Efraimidis and Spirakis, Weighted Random Sampling with a Reservoir, Information Processing Letters 97(5), "
        "2006; as in the first step of power-of-choice (Cho, Wang and Joshi, 2020)"
    )

    def __init__(self, cohort: int, weights: Literal["equal", "samples"] = "equal") -> None:
        check_whole("cohort", cohort, lowest=1)
        check_choice("weights", weights, "equal", "samples")
        self.cohort, self.weights = cohort, weights

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return m distinct candidates."""
        size = cohort_size(view, self.cohort)
        client = np.sort(view.client[draw_distinct(data_sizes(view), size, rng)])
        return Cohort(client, weights=np.full(size, 1.0 / max(size, 1)) if self.weights == "equal" else None)
