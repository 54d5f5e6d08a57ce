"""Where members end early, of the phases whose times are planned."""

from typing import Final, NamedTuple

import numpy as np

from fedsim.arrays import FloatArray, IntArray, any_of
from fedsim.history.outcomes import COMPUTE
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.effects.contract import NEVER, Effect, Limit
from fedsim.rounds.plan import Plan

_NO_EFFECT: Final = -1


class Stop(NamedTuple):
    """Where a member ends early: in a phase, some seconds after it was due, by an effect.

    By then no more than some bits have been carried, inf where the links say how many. ``since_start_s`` is finite
    where the end is an instant: sums of phases are not rounded as it is.
    """

    phase: int
    after_s: float
    cause: Effect
    most_bits: float
    since_start_s: float


def stops_of(clients: Clients, plan: Plan, phases: range, members: IntArray) -> dict[int, Stop]:
    """Return where members end early, by their positions, and let effects take note of the phases that are passed."""
    stops: dict[int, Stop] = {}
    for phase in phases:
        asked = clients.asked[phase]
        if not (asked.limiting or asked.passing):
            continue
        given = [(place, effect.limit(plan, phase, members)) for place, effect in enumerate(asked.limiting)]
        found = _first(clients, plan, phase, members, [(place, limit) for place, limit in given if limit is not None])
        stays = None
        if found is not None:
            stays = found.after_s == NEVER
            for k in (~stays).nonzero()[0].tolist():
                cause = asked.limiting[found.cause[k]]
                since_s = float(found.since_start_s[k])
                stops[int(members[k])] = Stop(phase, float(found.after_s[k]), cause, float(found.bits[k]), since_s)
        for effect in asked.passing:
            passing = members if stays is None else members[stays]
            ends = effect.passed(plan, phase, passing)
            if ends is None or not any_of(ends):
                continue
            if stays is None:
                stays = np.ones(members.size, dtype=bool)
            takes_s = plan.queue_s[phase][members] + plan.spent_s[phase][members]
            for k in stays.nonzero()[0][ends].tolist():
                tied = _NO_EFFECT if found is None else found.tied[k]
                cause, bits = (effect, NEVER) if found is None else (effect, float(found.bits[k]))
                stops[int(members[k])] = Stop(
                    phase, float(takes_s[k]), cause if tied == _NO_EFFECT else asked.limiting[tied], bits, NEVER
                )
                stays[k] = False
        if stays is not None:
            members = members[stays]
    return stops


class _First(NamedTuple):
    """The first limit of each of m members, if it ends a phase early, and the bits carried by then.

    ``cause`` and ``tied`` are places of effects: of that limit, and of the first that is reached as the phase ends.
    """

    after_s: FloatArray
    bits: FloatArray
    since_start_s: FloatArray
    cause: IntArray
    tied: IntArray


def _first(
    clients: Clients, plan: Plan, phase: int, members: IntArray, limits: list[tuple[int, Limit]]
) -> _First | None:
    """Return the first limits that are reached in a phase or as it ends; None if none is."""
    if not limits:
        return None
    takes_s, found = plan.queue_s[phase][members] + plan.spent_s[phase][members], None
    for place, limit in limits:
        stop_s = np.maximum(0.0, _reached_s(clients, plan, phase, members, limit))
        if not any_of(stop_s <= takes_s):
            continue
        if found is None:
            never, nobody = np.full((3, members.size), NEVER), np.full((2, members.size), _NO_EFFECT)
            found = _First(*never, *nobody)
        after_s, bits, since_start_s, cause, tied = found
        by_then = np.broadcast_to(limit.bits, members.shape)
        sooner = (stop_s < after_s) & (stop_s < takes_s)
        after_s[sooner], cause[sooner], bits[sooner] = stop_s[sooner], place, by_then[sooner]
        since_start_s[sooner] = np.broadcast_to(limit.since_start_s, members.shape)[sooner]
        at_end = (stop_s == takes_s) & (after_s == NEVER)
        tied[at_end & (tied == _NO_EFFECT)] = place
        bits[at_end] = np.minimum(bits, by_then)[at_end]
    return found


def stop_of(clients: Clients, plan: Plan, phase: int, i: int) -> Stop | None:
    """Return where one member ends early in a phase, as `stops_of` does for many; None if it passes."""
    asked = clients.asked[phase]
    queue_s = float(plan.queue_s[phase, i])
    takes_s = queue_s + float(plan.spent_s[phase, i])
    first_s, bits, since_s = NEVER, NEVER, NEVER
    gone_s = float(plan.begun_s[phase, i]) - plan.start_s
    cause: Effect | None = None
    tied: Effect | None = None
    for effect in asked.limiting:
        if (limit := effect.limit(plan, phase, i)) is not None:
            active_s, by_then = one(limit.active_s), one(limit.bits)
            if phase != COMPUTE and by_then < NEVER and active_s == NEVER:
                active_s = float(clients.run.seconds_to_carry(plan, phase, np.array([i]), np.array([by_then]))[0])
            leaves_s = one(limit.since_start_s)
            stop_s = max(0.0, min(one(limit.after_s), queue_s + active_s, leaves_s - gone_s))
            if stop_s < first_s and stop_s < takes_s:
                first_s, cause, bits, since_s = stop_s, effect, by_then, leaves_s
            elif stop_s == takes_s and first_s == NEVER:
                tied, bits = tied or effect, min(bits, by_then)
    if cause is not None:
        return Stop(phase, first_s, cause, bits, since_s)
    for effect in asked.passing:
        ends = effect.passed(plan, phase, i)
        if ends is not None and any_of(ends):
            return Stop(phase, takes_s, tied or effect, bits, NEVER)
    return None


def one(value: FloatArray | float) -> float:
    """Return a value of one member, which an effect may give as a number or as an array."""
    if type(value) is float:
        return value
    number: float = np.asarray(value).item()
    return number


def _reached_s(clients: Clients, plan: Plan, phase: int, members: IntArray, limit: Limit) -> FloatArray:
    """Return how many seconds after a phase of known duration was due a limit is reached."""
    active_s, after_s = limit.active_s, limit.after_s
    if limit.since_start_s is not NEVER:
        after_s = np.minimum(after_s, limit.since_start_s - (plan.begun_s[phase][members] - plan.start_s))
    if active_s is NEVER and limit.bits is NEVER:
        return np.broadcast_to(after_s, members.shape)
    if phase != COMPUTE and np.any(np.less(limit.bits, NEVER) & np.equal(active_s, NEVER)):
        carried_s = clients.run.seconds_to_carry(plan, phase, members, limit.bits)
        active_s = np.where(np.equal(active_s, NEVER), carried_s, active_s)
    reached_s: FloatArray = np.minimum(after_s, plan.queue_s[phase][members] + active_s)
    return reached_s
