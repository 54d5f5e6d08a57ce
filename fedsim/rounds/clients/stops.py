"""Where members end early, of the phases whose times are planned."""

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from fedsim.arrays import FloatArray, IntArray, filled
from fedsim.history.outcomes import COMPUTE
from fedsim.rounds.effects.contract import NEVER, Effect, Limit
from fedsim.rounds.plan import Plan

if TYPE_CHECKING:
    from fedsim.rounds.clients.clients import Clients

_NOBODY: Final = -1


class Stop(NamedTuple):
    """Where a member ends early: in a phase, so many seconds after it was due, by an effect.

    By then no more than some bits have been carried, inf where the links say how many.
    """

    phase: int
    after_s: float
    cause: Effect
    most_bits: float


def stops_of(clients: "Clients", plan: Plan, phases: range, members: IntArray) -> dict[int, Stop]:
    """Return where members end early, by their positions, and let effects take note of the phases that are passed."""
    stops: dict[int, Stop] = {}
    for phase in phases:
        asked = clients.asked[phase]
        takes_s = plan.queue_s[phase, members] + plan.spent_s[phase, members]
        first_s, bits = filled(members.size, NEVER), filled(members.size, NEVER)
        # Places of effects among those that limit: of the first limit, and of the first that is reached at the end.
        causes, tied = np.full((2, members.size), _NOBODY)
        for place, effect in enumerate(asked.limiting):
            if (limit := effect.limit(plan, phase, members)) is not None:
                stop_s = np.maximum(0.0, _reached_s(clients, plan, phase, members, limit))
                by_then = np.broadcast_to(limit.bits, members.shape)
                sooner = (stop_s < first_s) & (stop_s < takes_s)
                first_s[sooner], causes[sooner], bits[sooner] = stop_s[sooner], place, by_then[sooner]
                at_end = (stop_s == takes_s) & (first_s == NEVER)
                tied[at_end & (tied == _NOBODY)] = place
                bits[at_end] = np.minimum(bits, by_then)[at_end]
        stays = first_s == NEVER
        for k in np.flatnonzero(~stays).tolist():
            stops[int(members[k])] = Stop(phase, float(first_s[k]), asked.limiting[causes[k]], float(bits[k]))
        for effect in asked.passing:
            passing = np.flatnonzero(stays)
            ends = effect.passed(plan, phase, members[passing])
            if ends is not None and np.any(ends):
                for k in passing[ends].tolist():
                    cause = effect if tied[k] == _NOBODY else asked.limiting[tied[k]]
                    stops[int(members[k])] = Stop(phase, float(takes_s[k]), cause, float(bits[k]))
                stays[passing[ends]] = False
        members = members[stays]
    return stops


def stop_of(clients: "Clients", plan: Plan, phase: int, i: int) -> Stop | None:
    """Return where one member ends early in a phase, as `stops_of` does for many; None if it passes."""
    asked = clients.asked[phase]
    takes_s = float(plan.queue_s[phase, i] + plan.spent_s[phase, i])
    first_s, bits, cause, tied = NEVER, NEVER, None, None
    for effect in asked.limiting:
        if (limit := effect.limit(plan, phase, i)) is not None:
            stop_s = max(0.0, float(np.min(_reached_s(clients, plan, phase, i, limit))))
            if stop_s < first_s and stop_s < takes_s:
                first_s, cause, bits = stop_s, effect, float(np.min(limit.bits))
            elif stop_s == takes_s and first_s == NEVER:
                tied, bits = tied or effect, min(bits, float(np.min(limit.bits)))
    if cause is not None:
        return Stop(phase, first_s, cause, bits)
    for effect in asked.passing:
        ends = effect.passed(plan, phase, i)
        if ends is not None and np.any(ends):
            return Stop(phase, takes_s, tied or effect, bits)
    return None


def _reached_s(clients: "Clients", plan: Plan, phase: int, members: IntArray | int, limit: Limit) -> FloatArray:
    """Return how many seconds after a phase of known duration was due a limit is reached."""
    active_s = limit.active_s
    if phase != COMPUTE and np.any(np.less(limit.bits, NEVER) & np.equal(active_s, NEVER)):
        some = np.atleast_1d(members)
        carried_s = clients.run.seconds_to_carry(plan, phase, some, np.broadcast_to(limit.bits, some.shape))
        active_s = np.where(np.equal(active_s, NEVER), carried_s, active_s)
    reached_s: FloatArray = np.minimum(limit.after_s, plan.queue_s[phase, members] + active_s)
    return reached_s
