"""What ends a phase early: an empty battery, a hazard of the phase, a failed link.

A battery pays for a share of the phase in which it runs empty, which is known when the participation begins, or, after
a downlink of unknown duration whose time costs energy, when the phase begins. Hazards and outages are planned together
with waits of known duration. After a shared downlink the seconds since the start of the phase count, queues included.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from fedsim.arrays import FloatArray, IntArray
from fedsim.rounds.clients.link_outages import LinkOutages

Carried = Callable[[int, IntArray, FloatArray, FloatArray], FloatArray]
"""Returns the bits that dedicated transfers have carried, shape (m,).

Its arguments are a phase, the positions of clients in their cohort, the starts of their transfers and the seconds since
then, each of shape (m,).
"""

_WHOLE: Final = 1.0


class BatteryEmpty(NamedTuple):
    """Where a battery runs empty: the phase, and the shares of its time and of its bits or work that are paid for."""

    phase: int
    of_time: float
    of_bits: float


class Interruptions:
    """What ends the phases of one cohort's clients early.

    In all methods ``i`` is a client's position in the cohort, and ``phase`` is `DOWNLINK`, `COMPUTE` or `UPLINK`.
    """

    def __init__(
        self,
        rates_per_s: Sequence[float],
        endurance: Sequence[float] | None,
        empties: Mapping[int, BatteryEmpty],
        outages: LinkOutages | None,
        breakable: Sequence[int],
    ) -> None:
        self._rates_per_s = rates_per_s
        self._endurance_left = None if endurance is None else list(endurance)
        self._empties = dict(empties)
        self._outages, self._breakable = outages, frozenset(breakable)

    def set_empty(self, i: int, empty: BatteryEmpty | None) -> None:
        self._empties.pop(i, None)
        if empty is not None:
            self._empties[i] = empty

    def lost_after_s(self, i: int, phase: int) -> float:
        """Return the seconds from the start of a phase until client i, or its link, is lost; inf for never."""
        rate_per_s, left = self._rates_per_s[phase], self._endurance_left
        vanishes_s = math.inf if left is None or rate_per_s == 0 else left[i] / rate_per_s
        if self._outages is None or phase not in self._breakable:
            return vanishes_s
        return min(vanishes_s, self._outages.fails_after_s(i))

    def paid_share(self, i: int, phase: int) -> float:
        empty = self._empties.get(i)
        return _WHOLE if empty is None or empty.phase != phase else empty.of_bits

    def runs_empty(self, i: int, phase: int) -> bool:
        return i in self._empties and self._empties[i].phase == phase

    def first_cut(self, i: int, first: int, durations_s: Sequence[float]) -> tuple[float, BatteryEmpty | None] | None:
        """Return when a wait through phases of known durations ends early; None if it does not.

        Hazards are watched where each phase is a wait of its own.
        """
        lost_s, empty_s = self.lost_after_s(i, first), self._empty_after_s(i, first, durations_s)
        if empty_s < math.inf:
            return min(lost_s, empty_s), self._empties[i] if empty_s <= lost_s else None
        return (lost_s, None) if lost_s < sum(durations_s) else None

    def empty_by(self, i: int, first: int, durations_s: Sequence[float], elapsed_s: float) -> BatteryEmpty | None:
        """Return where the battery of client i has run empty in a wait so far; None if it has not.

        A wait may be cut at the very instant at which the battery runs empty, also in a phase of no length: the client
        does not pass that phase.
        """
        return self._empties[i] if self._empty_after_s(i, first, durations_s) <= elapsed_s else None

    def _empty_after_s(self, i: int, first: int, durations_s: Sequence[float]) -> float:
        """Return the seconds from the start of a wait until the battery of client i is empty; inf if it lasts."""
        empty = self._empties.get(i)
        if empty is None or not 0 <= empty.phase - first < len(durations_s):
            return math.inf
        phase, share = empty.phase - first, empty.of_time
        # A share of 0 takes no time, even of a phase of infinite duration.
        return sum(durations_s[:phase]) + (share * durations_s[phase] if share > 0 else 0.0)

    def passed(self, i: int, phase: int, elapsed_s: float) -> None:
        """Subtract the hazard of a phase that is over from the endurance of client i."""
        if self._endurance_left is not None:
            self._endurance_left[i] = max(0.0, self._endurance_left[i] - self._rates_per_s[phase] * elapsed_s)
