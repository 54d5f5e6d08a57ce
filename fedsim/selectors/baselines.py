"""Selectors of one rule: all, uniform, round robin, draws by samples or losses, and oracles of duration."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.errors import SelectorError
from fedsim.selectors.contracts import Cohort, OracleView, PublishedSelector, RoundView
from fedsim.selectors.options import AtLeast0, PositiveShare, check_options
from fedsim.selectors.sampling import (
    CohortSelector,
    data_sizes,
    draw_again,
    draw_distinct,
    lowest,
    never_delivered,
    tally,
)
from fedsim.units import Exponent


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
    """

    paper = (
        "McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, "
        "AISTATS 2017, with client fraction C = 1"
    )

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        return Cohort(view.client.copy())


class Uniform(CohortSelector):
    """Draw the cohort uniformly without replacement among the candidates."""

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


@dataclass(eq=False, repr=False)
class RoundRobin(CohortSelector):
    """Take the next m candidates in the order of their ids, starting after the last one of the round before.

    Clients that are no candidates are skipped until the next pass.
    """

    paper = (
        "Yang, Liu, Quek and Poor, Scheduling Policies for Federated Learning in Wireless Networks, IEEE Transactions "
        "on Communications 68(1), 2020, round robin"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._next = 0

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size = self.cohort_size(view)
        if not size:
            return Cohort(view.client[:0])
        chosen = view.pick((view.below(self._next) + np.arange(size)) % view.count)
        self._next = int(chosen[-1]) + 1
        return Cohort(np.sort(chosen))


@dataclass(eq=False, repr=False)
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

    weights: Literal["equal", "samples"] = "equal"

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size = self.cohort_size(view)
        client = np.sort(view.client[draw_distinct(data_sizes(view), size, rng)])
        return Cohort(client, weights=np.full(size, 1.0 / max(size, 1)) if self.weights == "equal" else None)


class MdSampling(CohortSelector):
    """Draw m times with replacement, client k with probability p_k = n_k / n, and average with 1/m per draw.

    The multinomial distribution gives each client m p_k draws on average, so that the aggregate is an unbiased
    estimate of the aggregate of all clients (Scheme I of Li et al., Lemma 4). A client that is drawn c times trains
    once with weight c/m, so that fewer than m clients may take part.

    Parameters
    ----------
    cohort : int >= 1
        Number of draws per round (m); at most as many as there are candidates.

    Notes
    -----
    p_k is taken over the candidates. Without data, all clients have equal p_k.
    """

    paper = (
        "Li, Huang, Yang, Wang and Zhang, On the Convergence of FedAvg on Non-IID Data, ICLR 2020, Scheme I; Li et "
        "al., Federated Optimization in Heterogeneous Networks, MLSys 2020, Algorithm 2"
    )

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        draws = self.cohort_size(view)
        return tally(view.client[draw_again(data_sizes(view), draws, rng)] if draws else view.client[:0])


@dataclass(eq=False, repr=False)
class PoissonSampling(PublishedSelector):
    """Draw each candidate by itself with one probability, so that cohorts differ in size.

    Each update has the weight ``1 / (rate K)`` for K clients in the crowd, whatever the size of the cohort. With
    ``rounds.weights = "sum"`` these weights are used as they are: the estimator with a fixed denominator, which the
    amplification of central privacy by sampling needs. A draw without any client is repeated.

    Parameters
    ----------
    rate : float in (0, 1]
        Probability with which each candidate is drawn.
    """

    paper = (
        "McMahan, Ramage, Talwar and Zhang, Learning Differentially Private Recurrent Language Models, ICLR 2018, "
        "Algorithm 1"
    )

    rate: PositiveShare

    def __post_init__(self) -> None:
        check_options(self)
        self.rate = float(self.rate)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        drawn = rng.random(view.client.size) < self.rate
        if drawn.size and not drawn.any():
            first = self._first(view.client.size, float(rng.random()))
            drawn[first + 1 :] = rng.random(view.client.size - first - 1) < self.rate
            drawn[first] = True
        client = view.client[drawn]
        return Cohort(client, weights=np.full(client.size, 1.0 / (self.rate * view.clients)))

    def _first(self, candidates: int, uniform: float) -> int:
        """Return the first place drawn of a draw that has any, by the inverse of its distribution."""
        missed = np.log1p(-self.rate)
        any_drawn = -np.expm1(candidates * missed)
        return min(int(np.log1p(-uniform * any_drawn) / missed), candidates - 1)


@dataclass(eq=False, repr=False)
class LossProportional(CohortSelector):
    """Draw m distinct clients with probabilities in proportion to the training loss of their last delivered update.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    data_exponent : float >= 0
        A client's value is its loss times n_k to this power: 0 for the loss alone, 0.5 for the valuation of Active
        Federated Learning (the sum of its samples' losses over the root of their number), 1 for the sum.

    Notes
    -----
    A client that was never selected gets the largest known loss of a candidate, and a client that was selected and has
    not delivered yet the mean of the known losses. Probabilities are in proportion to the values
    themselves, not to a softmax of them as in Goetz et al. Updates are averaged by samples as in FedAvg, which is
    biased towards clients of high loss.
    """

    paper = (
        "Goetz et al., Active Federated Learning, 2019, with draws in proportion to its valuation; after Katharopoulos "
        "and Fleuret, Not All Samples Are Created Equal, ICML 2018"
    )
    needs = ("loss",)
    communication = "a number up per update"

    data_exponent: AtLeast0[Exponent] = 0.0

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size = self.cohort_size(view)
        return Cohort(np.sort(view.client[draw_distinct(self.values(view), size, rng)]))

    def values(self, view: RoundView) -> FloatArray:
        """Return the valuations, to which probabilities are in proportion, shape (n,), at least 0."""
        known = np.isfinite(view.last_loss)
        last = np.maximum(view.last_loss, 0.0)
        largest = float(last[known].max(initial=0.0)) or 1.0
        mean = float(last[known].mean()) if known.any() else largest
        loss = np.where(known, last, np.where(never_delivered(view), mean, largest))
        return loss if not self.data_exponent else loss * view.samples**self.data_exponent


class Fastest(CohortSelector):
    """Take the candidates of least expected duration: an oracle, for comparison only.

    No server knows these means in advance. The same clients take part in every round in which they are candidates:
    their privacy budgets drain, and the data of all other clients are not used.
    """

    paper = (
        "Peleg et al., PAUSE: Low-Latency and Privacy-Aware Active User Selection for Federated Learning, "
        'section V-A, "fastest in expectation"'
    )
    oracle = True

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        if not isinstance(view, OracleView):
            raise SelectorError("Fastest is an oracle: it needs a view with expected_duration_s")
        first = np.argsort(view.expected_duration_s, kind="stable")[: self.cohort_size(view)]
        return Cohort(np.sort(view.client[first]))


class Soonest(CohortSelector):
    """Take the m candidates of least duration in the round that begins: an oracle.

    No server knows this round's fading, jitter and load. With dedicated bandwidth no cohort of m makes a shorter
    round. Over a shared medium the durations are those of each client alone, and another cohort may be better.
    """

    paper = "fedsim's own lower bound of the round time; no paper"
    oracle = True

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        if not isinstance(view, OracleView) or view.coming_duration_s is None:
            raise SelectorError("Soonest is an oracle: it needs a view with coming_duration_s")
        size = self.cohort_size(view)
        return Cohort(np.sort(view.client[lowest(view.coming_duration_s(), size, rng)]))
