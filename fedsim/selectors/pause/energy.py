"""The terms of PAUSE's energy, and the common part of all selectors that search for a cohort of great energy.

Equation numbers are the paper's; K clients, m of them per round, T_k participations of client k.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, Reports, RoundView
from fedsim.selectors.options import Above0, AtLeast0, Range
from fedsim.selectors.pause.bandit import Rewards
from fedsim.selectors.sampling import CohortSelector
from fedsim.units import Seconds


@dataclass
class Terms:
    """The terms of (14) and (18) in one round; arrays have shape (n,), one element per candidate."""

    client: IntArray
    latency: FloatArray
    generalisation: FloatArray
    privacy: FloatArray
    alpha: float
    gamma: float
    m: int

    @cached_property
    def bonus(self) -> FloatArray:
        """The contribution of each candidate to a set's energy besides the latency, ``(alpha g + gamma p) / m``."""
        bonus = self.alpha * self.generalisation
        bonus += self.gamma * self.privacy
        bonus /= self.m
        return bonus

    @property
    def untried(self) -> int:
        """Number of candidates never tried; with m of them or more, every set of them has infinite energy."""
        return int(np.count_nonzero(np.isinf(self.latency)))

    def energy(self, members: IntArray) -> float:
        """Return the energy (18) of a set of m positions among the candidates."""
        return float(self.latency[members].min()) + math.fsum(self.bonus[members])


@dataclass(eq=False, repr=False)
class PauseEnergy(CohortSelector, ABC):
    """Select a set of great energy; subclasses define the latency term and the search.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    tau_min_s : float > 0
        Shortest possible duration of a client; the latency reward is ``tau_min_s`` over the duration.
    alpha : float >= 0
        Weight of generalisation (100 and 20 in the paper's runs).
    beta : float >= 1
        Exponent of the generalisation reward; the paper asks for more than 1 and its MNIST run uses 1.
    gamma : float >= 0
        Weight of privacy (5, 10 and 40 in the paper's runs); without effect in a run without privacy.
    time_index : "paper" or "reference-code"
        Time in the logarithm of (13) and in the share T_k / t of (8) at the selection of round t: t - 1 as in (14), or
        t as in the published code. T_k counts the rounds before t in both cases.

    Notes
    -----
    Defaults are the paper's CIFAR-10 run with 30 clients (figures 2 and 3).

    If the server asks for another number than ``cohort``, or there are fewer candidates, that number is the size of the
    set and the m of (14). The m of (8) and (13) remains ``cohort``, the size of an average round.
    """

    paper = (
        "Peleg, Lang, Rini, Shlezinger and Cohen, PAUSE: Low-Latency and Privacy-Aware Active User Selection "
        "for Federated Learning"
    )

    tau_min_s: Above0[Seconds] = 0.05
    alpha: AtLeast0[float] = 100.0
    beta: Annotated[float, Range(1)] = 2.0
    gamma: AtLeast0[float] = 5.0
    time_index: Literal["paper", "reference-code"] = field(default="paper", kw_only=True)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        m = self.cohort_size(view)
        if m in (0, view.client.size):
            return Cohort(view.client[:m].copy())
        return Cohort(view.client[self.search(self.terms(view), rng)])

    @abstractmethod
    def latency(self, view: RoundView) -> FloatArray:
        """Return the estimate of each candidate's ``tau_min / tau``, shape (n,); infinite without any knowledge."""

    @abstractmethod
    def search(self, terms: Terms, rng: np.random.Generator) -> IntArray:
        """Return the positions of a set of great energy, ascending, of more than m candidates."""

    def terms(self, view: RoundView) -> Terms:
        """Return the terms of (14) for the round that begins."""
        return Terms(
            client=view.client,
            latency=self.latency(view),
            generalisation=self.generalisation(view),
            privacy=self.privacy(view),
            alpha=self.alpha,
            gamma=self.gamma,
            m=self.cohort_size(view),
        )

    def generalisation(self, view: RoundView) -> FloatArray:
        """Return g_k of (8), shape (n,)."""
        if view.total_samples > 0:
            # Each array over a large crowd is new memory, so that the steps are taken in place.
            missing = view.samples * float(self.cohort)
            missing /= view.total_samples
        else:
            missing = np.full(view.client.size, self.cohort / view.clients)
        missing -= view.participations / self._time(view)
        reward = np.asarray(np.abs(missing))
        reward **= self.beta
        np.copysign(reward, missing, out=reward)
        return np.asarray(reward)

    def privacy(self, view: RoundView) -> FloatArray:
        """Return p_k of (7), shape (n,): the part of the budget that is left; 0 without privacy."""
        if view.privacy_budget is None:
            return np.zeros(view.client.size)
        left: FloatArray = view.privacy_spent / view.privacy_budget
        np.subtract(1.0, left, out=left)
        return left

    def _time(self, view: RoundView) -> int:
        """Return t - 1 or t, at least 1, so that T_k(0) / 0 is the share 0."""
        return max(view.round - 1, 1) if self.time_index == "paper" else view.round


@dataclass(eq=False, repr=False)
class PauseBandit(PauseEnergy):
    """A `PauseEnergy` whose latency term is the upper confidence bound (13) of observed rewards.

    Parameters
    ----------
    zeta : float > 0
        Factor on the empirical mean in the UCB, for more exploitation (section V-D: 3 for large crowds).
    **others
        As in `PauseEnergy`.

    Notes
    -----
    The duration of a client that did not deliver is the time that the server waited, a censored duration. The true
    duration is longer, so that the reward is an upper bound. Durations below ``tau_min_s``, 0 included, have the
    reward 1.
    """

    zeta: Above0[float] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._rewards = Rewards()

    def observe(self, reports: Reports) -> None:
        """Add the cohort's rewards ``tau_min_s / duration`` to their empirical means (11), (12)."""
        self._rewards.add(reports.client, self.tau_min_s / np.maximum(reports.duration_s, self.tau_min_s))

    def latency(self, view: RoundView) -> FloatArray:
        return self.ucb(view)

    def ucb(self, view: RoundView) -> FloatArray:
        """Return (13) with zeta, shape (n,); infinite without observations."""
        confidence = self.exploration(view) * math.log(self._time(view))
        return self._rewards.ucb(view, view.participations, confidence, self.zeta)

    def exploration(self, view: RoundView) -> int:
        """Return the factor of log t in (13): m + 1."""
        return self.cohort + 1
