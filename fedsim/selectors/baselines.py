"""Selectors without memory of what clients deliver: all, uniform, round robin, weighted by samples."""

from typing import Literal

import numpy as np

from fedsim.selectors.contracts import Cohort, PublishedSelector, RoundView
from fedsim.selectors.sampling import CohortSelector, data_sizes, draw_distinct
from fedsim.selectors.validation import check_choice


class All(PublishedSelector):
    """Take every candidate in every round: FedAvg with client fraction C = 1.

    SAFA selects the same way: all clients train, and the server takes the first updates that arrive. The round policy
    ``{ kind = "safa", max_wait_s = ... }`` follows SAFA's paper. The SAFA of REFL's experiments is a reduced form,
    without cache and without compensation of clients that were picked before: the round ends when a tenth of the
    clients has delivered, and later updates of at most five rounds count as fresh ones. Its settings::

        [selector]
        kind = "all"
        [rounds]
        policy = { kind = "quorum", share = 0.1, max_wait_s = 100.0 }
        late = { kind = "stale", weight = "constant", max_staleness = 5 }

    Examples
    --------
    >>> from fedsim import Testbed
    >>> with Testbed("scenarios/testbed/cell.toml") as testbed:
    ...     view = testbed.view()
    >>> All().select(view, np.random.default_rng(0)).client.size, view.clients
    (40, 40)
    """

    paper = (
        "McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, "
        "AISTATS 2017, with client fraction C = 1"
    )

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        return Cohort(view.client.copy())


class Uniform(CohortSelector):
    """Draw the cohort uniformly without replacement among the candidates.

    Examples
    --------
    >>> from fedsim import Testbed
    >>> with Testbed("scenarios/testbed/cell.toml") as testbed:
    ...     view = testbed.view()
    >>> rng = np.random.default_rng(1)
    >>> [Uniform(cohort=3).select(view, rng).client.tolist() for _ in range(2)]
    [[17, 19, 30], [5, 32, 37]]
    >>> Uniform(cohort=41).select(view, rng).client.size  # no more than there are
    40
    """

    paper = (
        "McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, "
        "AISTATS 2017, Algorithm 1"
    )

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size, count = self.cohort_size(view), view.count
        if count <= size:
            return Cohort(view.client.copy())
        chosen = rng.choice(count, size, replace=False)
        chosen.sort()
        return Cohort(view.pick(chosen))


class RoundRobin(CohortSelector):
    """Take the next m candidates in the order of their ids, starting after the last one of the round before.

    Clients that are no candidates are skipped until the next pass.
    """

    paper = (
        "Yang, Liu, Quek and Poor, Scheduling Policies for Federated Learning in Wireless Networks, IEEE Transactions "
        "on Communications 68(1), 2020, round robin"
    )

    def __init__(self, cohort: int) -> None:
        super().__init__(cohort)
        self._next = 0

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size = self.cohort_size(view)
        if not size:
            return Cohort(view.client.copy())
        chosen = view.pick((view.below(self._next) + np.arange(size)) % view.count)
        self._next = int(chosen[-1]) + 1
        return Cohort(np.sort(chosen))


class WeightedSampling(CohortSelector):
    """Draw m distinct clients one after the other, each with probability n_k over the data of the clients not drawn.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    weights : ``"equal"`` or ``"samples"``
        Aggregation weights: 1/m each, as the draw accounts for the data already, or n_k as in FedAvg, which counts data
        twice. Neither is unbiased, as the probability of selection is not m p_k; MD sampling and clustered sampling
        are unbiased.
    """

    paper = (
        "Efraimidis and Spirakis, Weighted Random Sampling with a Reservoir, Information Processing Letters 97(5), "
        "2006; as in the first step of power-of-choice (Cho, Wang and Joshi, 2020)"
    )

    def __init__(self, cohort: int, weights: Literal["equal", "samples"] = "equal") -> None:
        super().__init__(cohort)
        check_choice("weights", weights, "equal", "samples")
        self.weights = weights

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size = self.cohort_size(view)
        client = np.sort(view.client[draw_distinct(data_sizes(view), size, rng)])
        return Cohort(client, weights=np.full(size, 1.0 / max(size, 1)) if self.weights == "equal" else None)
