"""Rounds without a server: select and observe driven on a latency law in arrays, 10,000 rounds in a second or two.

Nothing is learned, all clients are there and deliver, and the latency of PAUSE is the whole of a participation, so that
a clock would add nothing. In `fedsim.simulate` with the network ``pause-two-speed``, the same seed and no learning
clients meet the same latencies, draw by draw.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.integrate import trapezoid
from scipy.special import ndtr

sys.path.insert(0, str(Path(__file__).parents[1]))

from paper_runs import rounds

from fedsim.arrays import FloatArray, IntArray, normal_quantile
from fedsim.selectors import RoundView, Selector
from fedsim.streams import Streams

ETA = 0.04  # of the geometric budget; its total cancels out of p_k
TAU_MIN_S = 0.05


@dataclass(frozen=True)
class Crowd:
    """Clients with normal latencies that have a floor (a point mass)."""

    centre_s: FloatArray
    std_s: float = 0.05
    floor_s: float = TAU_MIN_S
    _smallest: dict[tuple[int, ...], float] = field(default_factory=dict, repr=False)

    def duration_s(self, rounds: int, seed: int) -> FloatArray:
        """Return the latency of every client in every round, shape (rounds, K)."""
        numbers = np.arange(1, rounds + 1)[:, None]
        draw = Streams(seed).uniform("latency-uplink", np.arange(self.centre_s.size), numbers)
        return np.maximum(self.floor_s, self.centre_s + self.std_s * normal_quantile(draw))

    def expected_reward(self) -> FloatArray:
        """Return mu_k = E[tau_min / tau_k] of each client."""
        return np.array([self.expected_smallest(np.array([client])) for client in range(self.centre_s.size)])

    def expected_smallest(self, members: IntArray) -> float:
        """Return E[min over the members of tau_min / tau_k], by the trapezoidal rule with 4,000 steps.

        It is the integral over x from 0 to 1 of the probability that every member's latency is at most tau_min / x.
        """
        key = tuple(members.tolist())
        if key not in self._smallest:
            x = np.linspace(0.0, 1.0, 4001)[1:]
            at_most = ndtr((self.floor_s / x - self.centre_s[members][:, None]) / self.std_s)
            reached = np.concatenate([[1.0], at_most.prod(axis=0)])
            self._smallest[key] = float(trapezoid(reached, dx=1 / 4000))
        return self._smallest[key]


def two_speed(clients: int) -> Crowd:
    """Return the crowd of the published code: an even number of clients, half of them fast."""
    climb = np.arange(1, clients // 2 + 1) / (clients // 2)
    return Crowd(np.concatenate([0.05 + 0.15 * climb, 0.70 + 0.20 * climb]))


@dataclass(frozen=True)
class Played:
    """One round: what the selector saw, whom it took, and how long all clients would have taken."""

    view: RoundView
    members: IntArray
    duration_s: FloatArray


def play(selector: Selector, crowd: Crowd, number_of_rounds: int, seed: int) -> Iterator[Played]:
    """Yield the rounds of a run; ids are positions, as all clients are candidates."""
    duration_s, rng = crowd.duration_s(number_of_rounds, seed), Streams(seed).generator("selection")
    participations = np.zeros(crowd.centre_s.size, dtype=np.int64)
    for number in range(1, number_of_rounds + 1):
        view = view_of(number, participations)
        members = selector.select(view, rng).client
        yield Played(view, members, duration_s[number - 1])
        participations = participations.copy()
        participations[members] += 1
        selector.observe(rounds.reports_of(number, members, duration_s[number - 1, members]))


def view_of(number: int, participations: IntArray) -> RoundView:
    """Return what a server knows in a round in which all clients are there, with equally many samples."""
    return rounds.view_of(number, participations, privacy_spent=-np.expm1(-ETA * participations), privacy_budget=1.0)
