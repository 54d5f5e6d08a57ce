"""The crowds on which PAUSE's selectors are studied, and their rounds about timing only, in fedsim's own simulator."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.integrate import trapezoid
from scipy.special import ndtr

sys.path.insert(0, str(Path(__file__).parents[1]))

from fedsim import Scenario, simulate
from fedsim.arrays import FloatArray, IntArray
from fedsim.history import History
from fedsim.network.latency import TwoSpeed, TwoSpeedLinks
from fedsim.run_setup import RunSetup
from fedsim.selectors import Cohort, Reports, RoundView, Selector
from fedsim.streams import Streams

TAU_MIN_S: Final = 0.05
ROUNDS: Final = Scenario.load(Path(__file__).parents[1] / "paper_runs" / "timing.toml")
Look = Callable[[Any, RoundView, IntArray], object]
"""What looks at a selection: at the run's own copy of the selector, the view, and the cohort."""


class Margin(TwoSpeed):
    """Three fast users of twelve, so that one set stays the best by a margin, as in the proof of Theorem 3."""

    def build(self, run: RunSetup) -> TwoSpeedLinks:
        fast, slow = 0.05 + 0.01 * np.arange(1, 4), 0.50 + 0.40 * np.arange(1, run.clients - 2) / (run.clients - 3)
        return TwoSpeedLinks(np.concatenate([fast, slow]), self.std_s, self.floor_s, run.streams)


class Crowd(NamedTuple):
    """So many users whose latencies have a normal law with a floor; that of the paper by default."""

    clients: int
    network: TwoSpeed = TwoSpeed()

    def links(self, seed: int = 0) -> TwoSpeedLinks:
        return self.network.build(RunSetup.at(np.zeros((self.clients, 2)), Streams(seed)))

    def expected_smallest(self, members: Sequence[int]) -> float:
        """Return E[min over the members of tau_min / tau_k], by the trapezoidal rule with 4,000 steps.

        It is the integral over x from 0 to 1 of the probability that every member's latency is at most tau_min / x.
        """
        centre_s = self.links().centre_s[list(members)][:, None]
        x = np.linspace(0.0, 1.0, 4001)[1:]
        at_most = ndtr((self.network.floor_s / x - centre_s) / self.network.std_s).prod(axis=0)
        return float(trapezoid(np.concatenate([[1.0], at_most]), dx=1 / 4000))

    def expected_reward(self) -> FloatArray:
        """Return mu_k = E[tau_min / tau_k] of each user."""
        return np.array([self.expected_smallest([client]) for client in range(self.clients)])

    def scenario(self, selector: Any, rounds: int = 1, seed: int = 0) -> Scenario:
        """Return rounds of this crowd about timing only; the budget cancels out of p."""
        crowd = {"network": self.network, "crowd.clients": self.clients}
        return ROUNDS.replace({"seed": seed, **crowd, "rounds.count": rounds, "selector": selector})

    def play(self, policy: Selector, rounds: int, seed: int, look: Look) -> History:
        """Return a run whose selections are looked at, one by one."""
        watched = _Watched(policy, look, self.links(seed), Streams(seed).generator("selection"))
        return simulate(self.scenario(watched, rounds, seed), store=False)


@dataclass
class _Watched:
    """A selector whose draws are one stream over all rounds, and to which the clock rounds no latency."""

    policy: Selector
    look: Look
    links: TwoSpeedLinks
    rng: np.random.Generator

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        cohort = self.policy.select(view, self.rng)
        self.look(self.policy, view, cohort.client)
        return cohort

    def observe(self, reports: Reports) -> None:
        drawn_s = self.links.uplink_s(reports.client, reports.round, np.zeros(0), 0.0)
        self.policy.observe(replace(reports, duration_s=drawn_s))
