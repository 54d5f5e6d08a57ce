"""The clients of one run: what times their phases, and asks the list of effects."""

from typing import Final, NamedTuple, Self

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray, any_of, from_zero_to_finite
from fedsim.errors import ScenarioError
from fedsim.history.outcomes import COMPUTE, DOWNLINK, PHASES, UPLINK
from fedsim.rounds.effects.contract import NEVER, Effect, Effects, Limit
from fedsim.rounds.plan import Plan
from fedsim.rounds.run import Run

_ALL: Final = slice(None)
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


class Clients:
    """The clients of one run."""

    def __init__(self, run: Run) -> None:
        self.run, self.env = run, run.env
        bits = run.workload.down_bits
        if run.medium is not None:
            # Whether the shared downlink and uplink of each client carry nothing, shape (2, K).
            never = np.isinf([run.links.expected_downlink_s(bits), run.links.expected_uplink_s(bits)])
            self._unreachable = never & np.array(self.run.shared)[[DOWNLINK, UPLINK], None]
            self._all_reachable = not self._unreachable.any()
        self.effects = Effects(run.effects)
        starts = frozenset[int]().union(*[effect.starts for effect in self.effects])
        phases = range(len(PHASES))
        self.on_clock = tuple(self.run.shared[phase] or phase in starts for phase in phases)
        self.known = next((phase for phase in phases if self.on_clock[phase]), len(PHASES))
        for effect in self.effects:
            effect.begin(self.run)
        self.quiet = [not (asked.changing or asked.waiting) for asked in map(self.effects.asked, phases)]
        self.planning, self.settling = self.effects.having("plan"), self.effects.having("settle")
        self.asked = [self.effects.asked(phase) for phase in phases]
        self.unasked = [asked.quiet for asked in self.asked]
        # Whether effects may be asked about all downlinks of a cohort at once, which all begin when it is sent.
        self.asked_together = not (self.unasked[DOWNLINK] or DOWNLINK in starts)
        self.plain = all(self.unasked)
        self.may_queue = run.medium is not None or not self.plain
        # Whether how long a member works does not change after it was sent.
        self.work_is_known = self.quiet[COMPUTE]

    def __deepcopy__(self, memo: object) -> Self:
        """Return the clients themselves: a copy of a view refers to the same run."""
        return self

    @property
    def none_is_lost(self) -> bool:
        """Whether every client responds after a time that is known in advance."""
        return self.run.medium is None and not any(effect.may_end for effect in self.effects)

    def plan_known(self, plan: Plan) -> dict[int, Stop]:
        """Find how long the phases take whose times are known from the start, and return where members end early."""
        begun_s, spent_s, known = plan.begun_s, plan.spent_s, self.known
        due_s = begun_s[DOWNLINK]
        if known:
            due_s.fill(plan.start_s)
        for phase in range(known):
            if self.quiet[phase]:
                spent_s[phase] = took_s = self.run.seconds(plan, phase, _ALL, due_s)
                if phase + 1 < known:
                    due_s = np.add(due_s, took_s, out=begun_s[phase + 1])
            else:
                due_s = self.time(plan, phase, plan.everyone, due_s)
                if phase + 1 < known:
                    begun_s[phase + 1] = due_s
        if known:
            self.refuse_times(plan, slice(0, known))
        else:
            spent_s[COMPUTE] = self.run.seconds(plan, COMPUTE, _ALL, begun_s[COMPUTE])
            self.refuse_times(plan, slice(COMPUTE, UPLINK))
        if self.run.medium is not None:
            self.refuse_unreachable(plan)
        return {} if self.plain else stops_of(self, plan, range(known), plan.everyone)

    def time(self, plan: Plan, phase: int, members: IntArray, due_s: FloatArray) -> FloatArray:
        """Find how long a phase over own links takes that is due at some instants, and return when it will be over.

        Members are in ascending order.
        """
        every = members if members.size < plan.client.size else slice(None)
        plan.begun_s[phase, every] = due_s
        if self.quiet[phase]:
            plan.spent_s[phase, every] = took_s = self.run.seconds(plan, phase, every, due_s)
            return due_s + took_s
        self.prepare(plan, phase, members, every)
        took_s = plan.setup_s[phase, every] + self.run.seconds(plan, phase, every, plan.flows_s(phase, every))
        plan.spent_s[phase, every] = took_s
        over_s: FloatArray = due_s + (plan.queue_s[phase, every] + took_s)
        return over_s

    def prepare_one(self, plan: Plan, phase: int, i: int) -> tuple[float, float]:
        """Do as `prepare` for one member, and return its seconds of waiting and of setting up."""
        asked, queue_s, all_setup_s = self.asked[phase], 0.0, 0.0
        for effect in asked.changing:
            effect.due(plan, phase, i)
        for effect in asked.waiting:
            wait_s, setup_s = effect.wait_s(plan, phase, i)
            if wait_s > 0:
                plan.queue_s[phase, i] = queue_s = queue_s + one(wait_s)
            if setup_s > 0:
                plan.setup_s[phase, i] = all_setup_s = all_setup_s + one(setup_s)
        return queue_s, all_setup_s

    def prepare(self, plan: Plan, phase: int, members: IntArray, places: IntArray | slice) -> None:
        """Let effects change a phase that is due, and note the waits before it, one after the other.

        ``places`` are the members too; a slice if they are all.
        """
        for effect in self.asked[phase].changing:
            effect.due(plan, phase, members)
        for effect in self.asked[phase].waiting:
            wait_s, setup_s = effect.wait_s(plan, phase, members)
            if type(wait_s) is not float or wait_s:
                plan.queue_s[phase][places] += wait_s
            if type(setup_s) is not float or setup_s:
                plan.setup_s[phase][places] += setup_s

    def phases_s(self, plan: Plan) -> FloatArray:
        """Return the seconds of each phase of a cohort that would start now, shape (3, n); means on a shared medium."""
        plan.begin(float(self.env.now))
        for effect in self.planning:
            if effect.says("wait_s") or effect.says("due"):
                effect.plan(plan)
        links, due_s = self.run.links, np.full(plan.client.size, plan.start_s)
        for phase, expected_s in enumerate((links.expected_downlink_s, None, links.expected_uplink_s)):
            if expected_s is not None and self.run.shared[phase]:
                plan.spent_s[phase] = expected_s(float(np.max(plan.bits[phase // 2])))[plan.client]
                due_s = due_s + plan.spent_s[phase]
            else:
                due_s = self.time(plan, phase, plan.everyone, due_s)
        phases_s: FloatArray = plan.queue_s + plan.spent_s
        return phases_s

    def refuse_times(self, plan: Plan, phases: slice, members: IntArray | None = None) -> None:
        """Refuse negative durations of phases that are planned, and a wait without limit for one that never ends."""
        times_s = plan.spent_s[phases] if members is None else plan.spent_s[phases, members]
        if from_zero_to_finite(times_s):
            return
        never = plan.waits_for_all & np.isinf(times_s)
        places = slice(None) if members is None else members
        self._refuse(plan, phases, places, ~(times_s >= 0) | never, never)

    def refuse_unreachable(self, plan: Plan) -> None:
        """Refuse a wait without limit for a shared medium that carries nothing to or from a client."""
        if plan.waits_for_all and not self._all_reachable:
            never = np.zeros((len(PHASES), plan.client.size), dtype=bool)
            never[[DOWNLINK, UPLINK]] = self._unreachable[:, plan.client]
            self._refuse(plan, slice(None), slice(None), never, never)

    def _refuse(self, plan: Plan, phases: slice, members: IntArray | slice, wrong: BoolArray, never: BoolArray) -> None:
        for row, i in np.argwhere(wrong).tolist():
            times_s, client = plan.spent_s[phases, members], plan.client[members]
            why = plan.why_all if never[row, i] else "times are at least 0"
            raise ScenarioError(
                f"round {plan.number}: the {PHASES[(phases.start or 0) + row]} of client {client[i]} would take "
                f"{times_s[row, i]} s; {why}"
            )


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
    queue_s: float = plan.queue_s.item(phase, i)
    takes_s: float = queue_s + plan.spent_s.item(phase, i)
    first_s, bits, since_s = NEVER, NEVER, NEVER
    gone_s = plan.begun_s.item(phase, i) - plan.start_s
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
    number: float = value.item() if type(value) is np.ndarray else float(value)
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
