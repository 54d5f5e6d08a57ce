"""The clients of one run: what times their phases, and asks the list of effects."""

import math
from typing import Final, Self

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.errors import ScenarioError
from fedsim.history.outcomes import COMPUTE, DOWNLINK, PHASES, UPLINK
from fedsim.rounds.effects.contract import Effects
from fedsim.rounds.plan import Plan
from fedsim.rounds.run import Run

_INFINITE: Final = int(np.array(math.inf).view(np.uint64))


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
        self.planning, self.settling = self.effects.having("plan"), self.effects.having("settle")
        self.asked = [self.effects.asked(phase) for phase in phases]
        # Whether effects may be asked about all downlinks of a cohort at once, which all begin when it is sent.
        self.asked_together = not (self.asked[DOWNLINK].quiet or DOWNLINK in starts)
        self.plain = all(asked.quiet for asked in self.asked)
        # Whether how long a member works does not change after it was sent.
        self.work_is_known = not (self.asked[COMPUTE].changing or self.asked[COMPUTE].waiting)

    def __deepcopy__(self, memo: object) -> Self:
        """Return the clients themselves: a copy of a view refers to the same run."""
        return self

    @property
    def none_is_lost(self) -> bool:
        """Whether every client responds after a time that is known in advance."""
        return self.run.medium is None and not any(effect.may_end for effect in self.effects)

    def time(self, plan: Plan, phase: int, members: IntArray, due_s: FloatArray) -> FloatArray:
        """Find how long a phase over own links takes that is due at some instants, and return when it will be over.

        Members are in ascending order.
        """
        every = members if members.size < plan.client.size else slice(None)
        plan.begun_s[phase, every] = due_s
        asked = self.asked[phase]
        if not (asked.changing or asked.waiting):
            plan.spent_s[phase, every] = took_s = self.run.seconds(plan, phase, every, due_s)
            return due_s + took_s
        self.prepare(plan, phase, members, every)
        took_s = plan.setup_s[phase, every] + self.run.seconds(plan, phase, every, plan.flows_s(phase, every))
        plan.spent_s[phase, every] = took_s
        over_s: FloatArray = due_s + (plan.queue_s[phase, every] + took_s)
        return over_s

    def prepare_one(self, plan: Plan, phase: int, i: int) -> tuple[float, float]:
        """Do as `prepare` for one member, and return its seconds of waiting and of setting up."""
        queue_s = all_setup_s = 0.0
        for effect in self.asked[phase].changing:
            effect.due(plan, phase, i)
        for effect in self.asked[phase].waiting:
            wait_s, setup_s = effect.wait_s(plan, phase, i)
            if wait_s > 0:
                plan.queue_s[phase, i] = queue_s = queue_s + np.asarray(wait_s).item()
            if setup_s > 0:
                plan.setup_s[phase, i] = all_setup_s = all_setup_s + np.asarray(setup_s).item()
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
                plan.queue_s[phase, places] += wait_s
            plan.setup_s[phase, places] += setup_s

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
        if not times_s.size:
            return
        # Bits ascend from 0 to inf, and those of negative numbers and NaN are above them.
        highest = np.maximum.reduce(times_s.view(np.uint64), axis=None)
        if highest < _INFINITE or (highest == _INFINITE and not plan.waits_for_all):
            return
        never = plan.waits_for_all & np.isinf(times_s)
        places = slice(None) if members is None else members
        self._refuse(plan, phases, places, ~(times_s >= 0) | never, never)

    def refuse_unreachable(self, plan: Plan) -> None:
        """Refuse a wait without limit for a shared medium that carries nothing to or from a client."""
        if self.run.medium is not None and plan.waits_for_all and not self._all_reachable:
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
