"""When the phases of a cohort begin and end, as far as that is known."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from fedsim.history.outcomes import COMPUTE, DOWNLINK, PHASES, UPLINK
from fedsim.network.transfers import Transfer
from fedsim.rounds.clients.clients import Clients, Stop, stop_of
from fedsim.rounds.plan import Plan

_END: Final = len(PHASES)


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


class Schedule:
    """The phases of one cohort: those from `Clients.known` on are planned when a member is due to begin one.

    Attributes are, of each member, how many phases are planned, where it ends early if it does, and the seconds that
    each phase takes, waits included, inf where unknown; and the uplinks that wait to be timed together, None where
    there are none.
    """

    def __init__(self, clients: Clients, plan: Plan, stops: dict[int, Stop]) -> None:
        self._clients, self._plan = clients, plan
        shared, on_clock = clients.run.shared[DOWNLINK], clients.on_clock
        self.starts = KnownStarts() if shared and not on_clock[UPLINK] else None
        # Work between two phases on the clock takes as long as was known from the start.
        works = shared and on_clock[UPLINK] and clients.unasked[COMPUTE]
        self.planned, self.stops = [UPLINK if works else clients.known] * plan.client.size, stops
        self.takes_s: list[list[float]] = (plan.queue_s + plan.spent_s).tolist()

    def until_stop_s(self, i: int, phase: int, stop: Stop, now_s: float) -> float:
        """Return the seconds until member i, whose phase begins now, ends early."""
        if stop.since_start_s < math.inf:
            return max(0.0, stop.since_start_s - (now_s - self._plan.start_s))
        return sum([takes_s[i] for takes_s in self.takes_s[phase : stop.phase]]) + stop.after_s

    def announce(self, i: int, downlink: Transfer) -> None:
        """Use the arrival that a downlink announces, if it does and the work that follows is known."""
        if self.starts is not None and downlink.announces_arrival and self._clients.work_is_known:
            self.starts.announced[i] = downlink

    def plan_late(self, i: int, phase: int, now_s: float, ends_s: Sequence[float]) -> None:
        """Plan a phase of member i that is due now, and those after it as far as they are known from here on."""
        plan, clients, due_s = self._plan, self._clients, now_s
        until = phase + 1
        while self.starts is None and until < _END and not clients.on_clock[until]:
            until += 1
        for later in range(phase, until):
            asked = clients.asked[later]
            if later == COMPUTE and clients.quiet[COMPUTE]:
                plan.begun_s[COMPUTE, i] = due_s  # its duration was known from the start
                takes_s = self.takes_s[COMPUTE][i]
            else:
                if later == UPLINK and self.starts is not None:
                    self._time_uplinks(i, self.starts, ends_s)
                else:
                    member = np.array([i])
                    clients.time(plan, later, member, np.array([due_s]))
                    clients.refuse_times(plan, slice(later, later + 1), member)
                self.takes_s[later][i] = takes_s = float(plan.queue_s[later, i] + plan.spent_s[later, i])
            if (asked.limiting or asked.passing) and i not in self.stops:
                stop = stop_of(clients, plan, later, i)
                if stop is not None:
                    self.stops[i] = stop
            due_s += takes_s
        self.planned[i] = until
        if phase == COMPUTE and self.starts is not None:
            self.starts.announced.pop(i, None)
            if math.isnan(plan.begun_s[UPLINK, i]):
                self.starts.known[i] = due_s

    def _time_uplinks(self, i: int, starts: KnownStarts, ends_s: Sequence[float]) -> None:
        """Time the uplink of member i, and those of all others in flight that are known to be due, in one call."""
        plan = self._plan
        if math.isnan(plan.begun_s[UPLINK, i]):
            ready = [(j, due_s) for j, due_s in starts.take(plan) if math.isnan(ends_s[j])]
            members = np.array([j for j, _ in ready], dtype=np.int64)
            self._clients.time(plan, UPLINK, members, np.array([due_s for _, due_s in ready]))
            self._clients.refuse_times(plan, slice(UPLINK, _END), members)
