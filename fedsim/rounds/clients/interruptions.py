"""What ends a phase before its time: a battery that runs empty, a hazard that belongs to the phase, a link that fails.

A battery pays for a share of the phase in which it runs empty, known when its client begins: so much of a planned
wait, or so many bits of a flow. A hazard of the phase is planned together with the waits where these are known at the
start of a round; after a shared downlink they are not, and the seconds since the phase began count, queues included.
A link that fails ends the uplink, and a downlink whose length nobody knows before; others are planned with it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from fedsim.rounds.clients.link_outages import LinkOutages

BatteryEmpty = tuple[int, float]
"""In which phase a battery runs empty, and the share of it that it pays for."""

_WHOLE: Final = 1.0


class Interruptions:
    """The limits of one cohort's members, by position.

    Parameters
    ----------
    rates_per_s : hazard of downlink, compute and uplink
    endurance : summed hazard at which each member vanishes; None if no hazard is to be watched here
    empties : of members whose battery does not last, where it runs empty
    outages : of their links; None for none
    in_phases : whose transfers are lost when the link fails, and were not planned with its outages
    """

    def __init__(
        self,
        rates_per_s: Sequence[float] = (0.0, 0.0, 0.0),
        endurance: Sequence[float] | None = None,
        empties: Mapping[int, BatteryEmpty] | None = None,
        outages: LinkOutages | None = None,
        in_phases: Sequence[int] = (),
    ) -> None:
        self._rates_per_s = rates_per_s if endurance is not None else (0.0, 0.0, 0.0)
        self._left = None if endurance is None else list(endurance)
        self._empties = dict(empties or {})
        self._outages, self._breakable = outages, frozenset(in_phases)

    def empties_in(self, i: int, empty: BatteryEmpty | None) -> None:
        """Say anew where a member's battery runs empty; None if it lasts after all."""
        self._empties.pop(i, None)
        if empty is not None:
            self._empties[i] = empty

    def hazard_s(self, i: int, phase: int) -> float:
        """Return how long after the beginning of a phase a member vanishes if the phase lasts so long."""
        rate_per_s = self._rates_per_s[phase]
        vanishes_s = math.inf if self._left is None or rate_per_s == 0 else self._left[i] / rate_per_s
        if self._outages is None or phase not in self._breakable:
            return vanishes_s
        return min(vanishes_s, self._outages.fails_after_s(i))

    def paid(self, i: int, phase: int) -> float:
        """Return the share of a phase that a member's battery pays for."""
        empty_in, share = self._empties.get(i, (phase, _WHOLE))
        return share if phase == empty_in else _WHOLE

    def runs_empty(self, i: int, phase: int) -> bool:
        """Return whether a member's battery runs empty in a phase."""
        return i in self._empties and self._empties[i][0] == phase

    def cut_s(self, i: int, first: int, lengths_s: Sequence[float]) -> tuple[float, BatteryEmpty | None] | None:
        """Return when a wait through phases of known lengths is cut short, and which battery does it if one does.

        None if nothing cuts it. Hazards are watched where phases are waited for one by one.
        """
        vanishes_s = self.hazard_s(i, first)
        empty = self._empties.get(i)
        if empty is not None and 0 <= empty[0] - first < len(lengths_s):
            phase, share = empty[0] - first, empty[1]
            # Nothing of a phase takes no time, also if the whole would take for ever.
            after_s = sum(lengths_s[:phase]) + (share * lengths_s[phase] if share > 0 else 0.0)
            return min(vanishes_s, after_s), empty if after_s <= vanishes_s else None
        return (vanishes_s, None) if vanishes_s < sum(lengths_s) else None

    def passed(self, i: int, phase: int, elapsed_s: float) -> None:
        """Take a phase that is over from what a member endures."""
        if self._left is not None:
            self._left[i] = max(0.0, self._left[i] - self._rates_per_s[phase] * elapsed_s)
