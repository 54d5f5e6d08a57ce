"""PAUSE's Genie, which knows the mean rewards and defines the regret, and its bound (sections III-B and III-C)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import SelectorError
from fedsim.selectors.contracts import OracleView, RoundView
from fedsim.selectors.options import Share
from fedsim.selectors.pause.energy import PauseEnergy, Terms
from fedsim.selectors.pause.pause import best_cohort


@dataclass(eq=False, repr=False)
class PauseGenie(PauseEnergy):
    """Select by (10): the arg max of PAUSE with the true expectations mu_k instead of the UCBs; an oracle.

    Parameters
    ----------
    cohort, tau_min_s, alpha, beta, gamma, time_index
        As in `fedsim.selectors.pause.energy.PauseEnergy`.
    expected_reward : numbers from 0 to 1, one per client id, optional
        mu_k = E[tau_min / tau_k]. Without them mu_k is ``tau_min`` over the expected duration of an `OracleView`; by
        Jensen's inequality that is at most mu_k, and equal for a constant duration. Each edge server numbers its
        clients from 0 and needs one number for each of them.
    """

    oracle = True

    expected_reward: Sequence[Share] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._known = None if self.expected_reward is None else np.array(self.expected_reward, dtype=np.float64)

    def latency(self, view: RoundView) -> FloatArray:
        if self._known is not None:
            if self._known.size != view.clients:
                raise SelectorError(
                    f"expected_reward: {self._known.size} numbers are not allowed; there must be one for each of "
                    f"the {view.clients} clients of this server"
                )
            return self._known[view.client]
        if not isinstance(view, OracleView):
            raise SelectorError("PauseGenie is an oracle: it needs expected_reward, or a view with expected_duration_s")
        return self.tau_min_s / np.maximum(view.expected_duration_s, self.tau_min_s)

    def search(self, terms: Terms, rng: np.random.Generator) -> IntArray:
        """Return the m positions that (10) asks for."""
        return best_cohort(terms.latency, terms.bonus, terms.m, rng)


def largest_reward_gap(alpha: float, gamma: float, expected_reward: FloatArray) -> float:
    """Return the bound of Delta_max in Lemma 1 (16), with a minimum in its last term, which is misprinted."""
    return 2 * alpha + gamma + float(np.ptp(expected_reward))


def regret_bound(
    rounds: FloatArray, m: int, alpha: float, gamma: float, expected_reward: FloatArray, delta: float
) -> FloatArray:
    """Return the right side of Theorem 3 (17), a bound of the regret, for each number of rounds."""
    per_client = 4 * (m + 1) * np.log(rounds) / delta**2 + 1 + 2 * math.pi**2 / 3
    gap = largest_reward_gap(alpha, gamma, expected_reward) + delta
    return np.asarray(expected_reward.size * gap * per_client)


def least_difference(values: FloatArray) -> float:
    """Return the least difference between two of at least two values."""
    return float(np.diff(np.sort(values)).min())
