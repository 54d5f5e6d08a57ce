"""Clients that leave at instants that are known when they are sent: offline, crashed, or lost."""

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray, any_of
from fedsim.clock import TIE
from fedsim.devices import Availability, Dropout
from fedsim.devices.availability.on_off import OnOffProcess
from fedsim.devices.tracking import AvailabilityTracker
from fedsim.history.outcomes import UPLINK
from fedsim.rounds.effects.contract import NEVER, Effect, Limit, Members
from fedsim.rounds.plan import Plan
from fedsim.rounds.run import Run


class UpAndDown(Effect):
    """Each client's device or link works and fails in turn."""

    def __init__(self, up: OnOffProcess) -> None:
        self._up = up

    def free_s(self, client: IntArray, time_s: float) -> FloatArray:
        works, left_s = self._up.state(client, time_s)
        return np.where(works, time_s, time_s + left_s)

    def tracker(self, client: IntArray) -> AvailabilityTracker:
        return self._up.tracker(client)


class Leaving(Effect):
    """An effect whose members leave at instants that are known when they are sent."""

    def leaves_after_s(self, plan: Plan, task_s: FloatArray) -> FloatArray:
        """Return the seconds after which each member leaves, given those of its whole task; inf for never."""
        raise NotImplementedError

    def limit(self, plan: Plan, phase: int, members: Members) -> Limit | None:
        if self not in plan.notes:
            task_s = plan.whole_s()
            leaves_s = self.leaves_after_s(plan, task_s)
            # A task that ends at the instant of leaving has ended.
            leaves = plan.start_s + task_s > (plan.start_s + leaves_s) * (1.0 + TIE)
            plan.notes[self] = np.where(leaves, leaves_s, NEVER) if leaves.any() else None
        leaves_s = plan.notes[self]
        return None if leaves_s is None else Limit(since_start_s=leaves_s[members])


class Offline(Leaving):
    """A client goes offline during its participation."""

    def __init__(self, availability: Availability) -> None:
        self._availability = availability

    def leaves_after_s(self, plan: Plan, task_s: FloatArray) -> FloatArray:
        leaves_s = self._availability.leaves_after_s(plan.client, plan.look.time_s, plan.look.draw, task_s)
        # An availability that evaluates end points alone states no leaving for a task of unknown duration.
        plan.notes[self, "unknown"] = np.isinf(task_s) & np.isinf(leaves_s)
        return leaves_s

    def passed(self, plan: Plan, phase: int, members: Members) -> BoolArray | None:
        """Ask at the end of a task whose duration was not known when it began."""
        if phase != UPLINK or not any_of(unknown := plan.notes[self, "unknown"][members]):
            return None
        members = np.atleast_1d(members)
        client, task_s = plan.client[members], plan.whole_s(members)
        leaves_s = self._availability.leaves_after_s(client, plan.look.time_s, plan.look.draw, task_s)
        left: BoolArray = unknown & (leaves_s < task_s)
        return left


class Crashes(UpAndDown, Leaving):
    """A client's device crashes, and is a dropout at that instant."""

    def leaves_after_s(self, plan: Plan, task_s: FloatArray) -> FloatArray:
        runs, left_s = self._up.state(plan.client, plan.look.time_s)
        return np.where(runs, np.maximum(plan.look.time_s + left_s - plan.start_s, 0.0), 0.0)


class Vanishing(Leaving):
    """A client vanishes after a time that a law of dropout draws."""

    def __init__(self, dropout: Dropout) -> None:
        self._dropout = dropout

    def begin(self, run: Run) -> None:
        self._streams = run.streams

    def leaves_after_s(self, plan: Plan, task_s: FloatArray) -> FloatArray:
        return self._dropout.time_to_dropout_s(plan.client, plan.draw, self._streams, plan.queue_s + plan.spent_s)


class Hazards(Effect):
    """A client vanishes at a rate of each phase, where the durations of phases are not known in advance."""

    def __init__(self, dropout: Dropout, rates_per_s: tuple[float, float, float]) -> None:
        self._dropout, self._rates_per_s = dropout, rates_per_s
        self.phases = frozenset(phase for phase, rate_per_s in enumerate(rates_per_s) if rate_per_s)

    def begin(self, run: Run) -> None:
        self._streams = run.streams

    def plan(self, plan: Plan) -> None:
        plan.notes[self] = self._dropout.endurance(plan.client, plan.draw, self._streams)

    def limit(self, plan: Plan, phase: int, members: Members) -> Limit | None:
        return Limit(after_s=plan.notes[self][members] / self._rates_per_s[phase])

    def passed(self, plan: Plan, phase: int, members: Members) -> None:
        endurance = plan.notes[self]
        took_s = plan.queue_s[phase, members] + plan.spent_s[phase, members]
        left = endurance[members] - self._rates_per_s[phase] * took_s
        endurance[members] = left * (left > 0)
