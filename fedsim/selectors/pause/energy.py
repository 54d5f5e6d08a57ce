"""What PAUSE weighs: the terms of its energy, which stand here once for every way to search for the best cohort.

Peleg, Lang, Rini, Shlezinger and Cohen, "PAUSE: Low-Latency and Privacy-Aware Active User Selection for Federated
Learning". Equation numbers are the paper's; K clients, m of them per round, T_k participations of client k.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import (
    Cohort,
    PublishedSelector,
    Reports,
    RoundView,
    check_number,
    check_whole,
    cohort_size,
)
from fedsim.selectors.pause.bandit import Rewards


@dataclass(frozen=True)
class Terms:
    """The terms of (14) and (18) in one round; arrays have one element per candidate.

    Attributes
    ----------
    client : ids
    latency : (13), infinite for clients never tried; the true expectation mu_k of the reward for the Genie
    generalisation, privacy : g_k of (8) and p_k of (7)
    alpha, gamma : their weights
    m : size of the cohort
    """

    client: IntArray
    latency: FloatArray
    generalisation: FloatArray
    privacy: FloatArray
    alpha: float
    gamma: float
    m: int

    @cached_property
    def bonus(self) -> FloatArray:
        """What each member adds to a set's energy besides the latency: ``(alpha g + gamma p) / m``."""
        return (self.alpha * self.generalisation + self.gamma * self.privacy) / self.m

    @property
    def untried(self) -> int:
        """How many candidates were never tried. Where they fill a cohort, every set of them has infinite energy."""
        return int(np.count_nonzero(np.isinf(self.latency)))

    def energy(self, members: IntArray) -> float:
        """Return (18) of a set, given by m positions among the candidates."""
        return float(self.latency[members].min()) + math.fsum(self.bonus[members])

    def reward(self, members: IntArray, slowest: float) -> float:
        """Return the reward (9) of a set whose slowest member earns ``tau_min / tau``, or its expectation."""
        return slowest + math.fsum(self.bonus[members])


class PauseEnergy(PublishedSelector, ABC):
    """Select a set of great energy; children say what they know of latency and how they search.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    tau_min_s : float > 0
        The shortest duration a client can have; the latency reward is ``tau_min_s`` over the duration.
    alpha : float >= 0
        Weight of generalisation (100 and 20 in the paper's runs).
    beta : float >= 1
        Exponent of the generalisation reward; the paper asks for more than 1 and its MNIST run uses 1.
    gamma : float >= 0
        Weight of privacy (5, 10 and 40 in the paper's runs); without effect in a run without privacy.
    time_index : "paper" or "reference-code"
        Which t enters the logarithm of (13) and the share T_k / t of (8) when round t is selected: t - 1 as in
        (14), or t as in the published code. T_k counts the rounds before t either way.

    Notes
    -----
    Defaults are the paper's CIFAR-10 run with 30 clients (figures 2 and 3).

    Where the server asks for another number than ``cohort``, or fewer are there, the set that is searched has that
    number, and the m of (14). The m of (8) and (13) stays ``cohort``: it stands for the rounds as they go on average.
    """

    paper = (
        "Peleg, Lang, Rini, Shlezinger and Cohen, PAUSE: Low-Latency and Privacy-Aware Active User Selection "
        "for Federated Learning"
    )

    def __init__(
        self,
        cohort: int,
        tau_min_s: float = 0.05,
        alpha: float = 100.0,
        beta: float = 2.0,
        gamma: float = 5.0,
        time_index: Literal["paper", "reference-code"] = "paper",
    ) -> None:
        check_whole("cohort", cohort, lowest=1)
        check_number("tau_min_s", tau_min_s, lowest=0, above=True)
        check_number("alpha", alpha, lowest=0)
        check_number("beta", beta, lowest=1)
        check_number("gamma", gamma, lowest=0)
        if time_index not in ("paper", "reference-code"):
            raise ValueError(f"time_index: {time_index!r} is not allowed; it must be 'paper' or 'reference-code'")
        self.cohort, self.tau_min_s, self.time_index = cohort, tau_min_s, time_index
        self.alpha, self.beta, self.gamma = alpha, beta, gamma

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return the set that the search finds; all candidates if there are no more than m."""
        m = cohort_size(view, self.cohort)
        if m in (0, view.client.size):
            return Cohort(view.client[:m].copy())
        return Cohort(view.client[self.search(self.terms(view), rng)])

    @abstractmethod
    def latency(self, view: RoundView) -> FloatArray:
        """Return what is known of each candidate's ``tau_min / tau``, infinite for nothing at all."""

    @abstractmethod
    def search(self, terms: Terms, rng: np.random.Generator) -> IntArray:
        """Return the positions of a set of great energy, ascending; there are more than m candidates."""

    def terms(self, view: RoundView) -> Terms:
        """Return the terms of (14) for the round that begins."""
        return Terms(
            client=view.client,
            latency=self.latency(view),
            generalisation=self.generalisation(view),
            privacy=self.privacy(view),
            alpha=self.alpha,
            gamma=self.gamma,
            m=cohort_size(view, self.cohort),
        )

    def generalisation(self, view: RoundView) -> FloatArray:
        """Return g_k of (8), one value per candidate.

        Before the first round nobody has had a share, and g is ``(m / K)^beta`` for equal data. In a run about
        timing only, without data, every client counts as holding an equal part.
        """
        if view.total_samples > 0:
            fair_share = self.cohort * view.samples / view.total_samples
        else:
            fair_share = np.full(view.client.size, self.cohort / view.clients)
        missing = fair_share - view.participations / self._time(view)
        return np.asarray(np.abs(missing) ** self.beta * np.sign(missing))

    def privacy(self, view: RoundView) -> FloatArray:
        """Return p_k of (7), one value per candidate: what is left of the budget; 0 without privacy."""
        if view.privacy_budget is None:
            return np.zeros(view.client.size)
        return np.asarray(1.0 - view.privacy_spent / view.privacy_budget)

    def _time(self, view: RoundView) -> int:
        """Return t - 1 or t, at least 1: T_k(0) / 0 stands for the share 0 that nobody has had yet."""
        return max(view.round - 1, 1) if self.time_index == "paper" else view.round


class PauseBandit(PauseEnergy):
    """A `PauseEnergy` that learns latencies from durations, by an upper confidence bound (13).

    Parameters
    ----------
    zeta : float > 0
        Factor on the empirical mean in the UCB, for more exploitation (section V-D: 3 for large crowds).
    **others
        As in `PauseEnergy`.

    Notes
    -----
    A client that did not deliver is reported with the time the server waited for it, a censored duration. It
    counts as the client's duration, as the server can know no better: the true one is longer, so the reward
    learned from it is an upper bound. A duration below ``tau_min_s``, zero included, earns the reward 1.
    """

    def __init__(
        self,
        cohort: int,
        tau_min_s: float = 0.05,
        alpha: float = 100.0,
        beta: float = 2.0,
        gamma: float = 5.0,
        zeta: float = 1.0,
        time_index: Literal["paper", "reference-code"] = "paper",
    ) -> None:
        super().__init__(cohort, tau_min_s, alpha, beta, gamma, time_index)
        check_number("zeta", zeta, lowest=0, above=True)
        self.zeta = zeta
        self._rewards = Rewards()

    def observe(self, reports: Reports) -> None:
        """Add the cohort's rewards ``tau_min_s / duration`` to their empirical means (11), (12)."""
        self._rewards.add(reports.client, self.tau_min_s / np.maximum(reports.duration_s, self.tau_min_s))

    def latency(self, view: RoundView) -> FloatArray:
        """Return `ucb`."""
        return self.ucb(view)

    def ucb(self, view: RoundView) -> FloatArray:
        """Return (13) with zeta, one value per candidate; infinite for those never observed."""
        tried = (self._rewards.count(view.client) > 0) & (view.participations > 0)
        mean = self._rewards.mean(view.client[tried])
        confidence = self.exploration(view) * math.log(self._time(view))
        ucb = np.full(view.client.size, np.inf)
        ucb[tried] = self.zeta * mean + np.sqrt(confidence / view.participations[tried])
        return ucb

    def exploration(self, view: RoundView) -> int:
        """Return the factor of log t in (13): m + 1."""
        return self.cohort + 1
