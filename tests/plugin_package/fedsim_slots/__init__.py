"""Parts for fedsim: a satellite with slots, and a selector of clients that have waited."""

from typing import Any, ClassVar

import numpy as np

from fedsim import Component, RoundView
from fedsim.network import NETWORKS
from fedsim.run_setup import RunSetup


class Slots(Component):
    """A satellite that sends at the beginning of slots of fixed length: each message waits for one."""

    requires: ClassVar[frozenset[str]] = frozenset()
    slot_s: float = 0.5
    propagation_s: float = 0.25

    def build(self, run: RunSetup) -> Any:
        """Return the links of one run: a uniform wait and the way there."""
        waits_s = [self.propagation_s + self.slot_s * k / 10 for k in range(11)]
        law = {"kind": "empirical", "values_s": waits_s}
        return NETWORKS.make({"kind": "latency", "downlink": law, "uplink": law}).build(run)


class LongestWait:
    """The clients whose last participation began longest ago, and of these the first by number."""

    def __init__(self, cohort: int = 5) -> None:
        self.cohort, self.last = cohort, np.zeros(0)

    def select(self, view: RoundView, rng: np.random.Generator) -> Any:
        """Return the clients that have waited longest."""
        if not self.last.size:
            self.last = np.zeros(view.clients)
        chosen = view.client[np.argsort(self.last[view.client], kind="stable")[: self.cohort]]
        self.last[chosen] = view.round
        return chosen

    def observe(self, reports: Any) -> None:
        """Learn nothing: what counts is when a client was asked."""
