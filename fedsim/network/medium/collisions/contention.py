"""How much of the time stations that contend for a channel carry data: the distributed coordination of IEEE 802.11.

G. Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination function", IEEE J. Sel. Areas Commun.
18(3), 2000: n saturated stations, each with a window that doubles after a collision, and collisions that are
independent of the window. All frames last equally long.
"""

from dataclasses import dataclass
from functools import lru_cache

_HALVINGS = 200


@lru_cache(maxsize=2**14)
def transmission_probability(stations: int, window: int, doublings: int) -> float:
    """Return tau, the probability that a station transmits in a slot; equations 7 and 9.

    ``tau = 2 (1 - 2p) / ((1 - 2p) (W + 1) + p W (1 - (2p)^m))`` falls with p, and ``p = 1 - (1 - tau)^(n - 1)`` rises
    with tau, so that there is one solution.
    """
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        tau = (low + high) / 2
        collides = 1.0 - (1.0 - tau) ** (stations - 1)
        # The factor (1 - (2p)^m) / (1 - 2p) is the sum of (2p)^i, also at p = 1/2.
        windows = sum((2.0 * collides) ** i for i in range(doublings))
        if tau < 2.0 / (window + 1 + collides * window * windows):
            low = tau
        else:
            high = tau
        if high - low <= 1e-15 * high:
            break
    return (low + high) / 2


@dataclass(frozen=True)
class Contention:
    """The times of a channel on which stations contend."""

    frame_s: float
    overhead_s: float
    idle_slot_s: float
    window: int
    doublings: int

    def carried_share(self, stations: int) -> float:
        """Return the share of time in which payload is carried; equation 13."""
        tau = transmission_probability(stations, self.window, self.doublings)
        idle = (1.0 - tau) ** stations
        success = stations * tau * (1.0 - tau) ** (stations - 1)
        slot_s = idle * self.idle_slot_s + (1.0 - idle) * (self.frame_s + self.overhead_s)
        return success * self.frame_s / slot_s
