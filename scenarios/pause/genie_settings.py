"""The settings in which PAUSE's regret is studied: crowds of twelve users and weights, the Genie of each, its bound."""

from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Final

import numpy as np
from crowds import TAU_MIN_S, Crowd

from fedsim.arrays import FloatArray
from fedsim.network.latency import TwoSpeed, TwoSpeedLinks
from fedsim.run_setup import RunSetup
from fedsim.selectors.pause.genie import PauseGenie, least_difference, regret_bound

CLIENTS, COHORT, BETA = 12, 3, 2.0
EVERY: Final = np.array(list(combinations(range(CLIENTS), COHORT)))
ALONE: Final = np.arange(CLIENTS)[:, None]


class Margin(TwoSpeed):
    """Three fast users of twelve, so that one set stays the best by a margin, as in the proof of Theorem 3."""

    def build(self, run: RunSetup) -> TwoSpeedLinks:
        fast, slow = 0.05 + 0.01 * np.arange(1, 4), 0.50 + 0.40 * np.arange(1, run.clients - 2) / (run.clients - 3)
        return TwoSpeedLinks(np.concatenate([fast, slow]), self.std_s, self.floor_s, run.streams)


@dataclass(frozen=True)
class Setting:
    crowd: Crowd
    alpha: float
    gamma: float

    @property
    def terms(self) -> tuple[int, float, float, float, float]:
        return COHORT, TAU_MIN_S, self.alpha, BETA, self.gamma

    @property
    def genie(self) -> PauseGenie:
        """The policy that knows mu_k."""
        return PauseGenie(*self.terms, expected_reward=self.crowd.expected_smallest(ALONE).tolist())

    def bounds(self, n: FloatArray) -> dict[str, FloatArray]:
        """Return Theorem 3 with both readings of delta."""
        mu = self.crowd.expected_smallest(ALONE)
        deltas = {"mean latencies": self.crowd.links().centre_s, "mean rewards": mu}
        bound = partial(regret_bound, n, COHORT, self.alpha, self.gamma, mu)
        return {f"Theorem 3, delta of {name}": bound(least_difference(values)) for name, values in deltas.items()}


MARGIN, PAPER = Crowd(CLIENTS, Margin()), Crowd(CLIENTS)
SETTINGS: Final = {
    "margin": Setting(MARGIN, alpha=0.2, gamma=1.0),
    "paper": Setting(PAPER, alpha=100.0, gamma=5.0),
    "margin-paper": Setting(MARGIN, alpha=100.0, gamma=5.0),
    "paper-margin": Setting(PAPER, alpha=0.2, gamma=1.0),
}
