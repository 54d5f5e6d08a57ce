"""Uplinks over own links after a shared downlink, whose starts become known one after the other."""

import math

from fedsim.network.transfers import Transfer
from fedsim.rounds.plan import Plan


class KnownStarts:
    """The uplinks of one cohort that are not timed yet.

    The start of an uplink is known once the member's downlink is over, or once the network announces when it will be.
    The uplinks of a cohort that receives a multicast are therefore timed in one call, when the first of them is due.
    """

    def __init__(self) -> None:
        self.known: dict[int, float] = {}
        self.announced: dict[int, Transfer] = {}

    def take(self, plan: Plan) -> list[tuple[int, float]]:
        """Return the members whose uplinks can be timed, in order, and the instants at which they are due, once."""
        for i, downlink in list(self.announced.items()):
            if (arrives_s := downlink.arrives_s()) < math.inf:
                self.known[i] = arrives_s + float(plan.compute_s[i] * plan.work[i])
                del self.announced[i]
        ready, self.known = sorted(self.known.items()), {}
        return ready
