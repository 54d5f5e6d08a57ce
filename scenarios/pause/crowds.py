"""The crowds on which PAUSE's selectors are studied, and their rounds about timing only, in fedsim's own simulator."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.integrate import trapezoid
from scipy.special import ndtr

sys.path.insert(0, str(Path(__file__).parents[1]))

from fedsim import Scenario, Testbed
from fedsim.arrays import FloatArray, IntArray
from fedsim.network.latency import TwoSpeed, TwoSpeedLinks
from fedsim.run_setup import RunSetup
from fedsim.selectors import Reports, RoundView, Selector
from fedsim.streams import Streams

TAU_MIN_S: Final = 0.05
WEIGHTS: Final = {30: (100.0, 2.0, 5.0, 1.0), 300: (20.0, 1.0, 10.0, 3.0)}
"""alpha, beta, gamma and zeta of figures 2 and 6, by the number of users."""
ROUNDS: Final = Scenario.load(Path(__file__).parents[1] / "paper_runs" / "timing.toml")


class Crowd(NamedTuple):
    """A number of users whose latencies have a normal law with a floor; that of the paper by default."""

    clients: int
    network: TwoSpeed = TwoSpeed()

    def links(self, seed: int = 0) -> TwoSpeedLinks:
        return self.network.build(RunSetup.at(np.zeros((self.clients, 2)), Streams(seed)))

    def expected_smallest(self, sets: IntArray) -> FloatArray:
        """Return E[min over the members of tau_min / tau_k] of each set, one a row, by the trapezoidal rule."""
        # The integral over x from 0 to 1 of the probability that every member's latency is at most tau_min / x.
        x, centre_s = np.linspace(0.0, 1.0, 4001)[1:], self.links().centre_s[:, None]
        at_most = ndtr((self.network.floor_s / x - centre_s) / self.network.std_s)
        together = [np.append(1.0, at_most[members].prod(axis=0)) for members in sets]
        return np.asarray(trapezoid(together, dx=1 / 4000, axis=1))

    def testbed(self, rounds: int = 1, seed: int = 0) -> Testbed:
        """Return rounds of this crowd to step through; the budget cancels out of p."""
        crowd = {"network": self.network, "crowd.clients": self.clients, "selector": "all"}
        return Testbed(ROUNDS.replace({**crowd, "seed": seed, "rounds.count": rounds}))

    def play(self, policy: Selector, rounds: int, seed: int = 0) -> Iterator[tuple[RoundView, IntArray]]:
        """Yield what a policy sees in each round and whom it takes; the clock rounds no latency that it is told."""
        links, rng = self.links(seed), Streams(seed).generator("selection")
        with self.testbed(rounds, seed) as testbed:
            for number in range(1, rounds + 1):
                view = testbed.view()
                client = policy.select(view, rng).client
                yield view, client
                testbed.round(client)
                took_s, none = links.uplink_s(client, number, np.zeros(0), 0.0), np.full(client.size, np.nan)
                told: dict[str, Any] = {"client": client, "delivered": took_s > 0, "duration_s": took_s, "loss": none}
                policy.observe(Reports(round=number, time_s=testbed.now_s, **told))
