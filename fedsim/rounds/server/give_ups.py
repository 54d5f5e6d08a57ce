"""After how many clients given up in a row no delivery is expected any more, where the laws of times say so."""

import copy
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import numpy as np

from fedsim.answers import unchecked
from fedsim.arrays import FloatArray, IntArray
from fedsim.code_digest import is_builtin
from fedsim.errors import PartError, ScenarioError
from fedsim.history.outcomes import PHASES
from fedsim.rounds.effects.contract import Effect
from fedsim.rounds.effects.leaving import Offline, Vanishing
from fedsim.rounds.plan import Look, Plan
from fedsim.rounds.run import Run

FEW: Final = 100
"""Clients given up in a row that are enough where no participation that the laws of times draw is short enough.

Effects of the user's own that change what clients are sent with, or their work, are asked in a copy with a clock of its
own. Where such an effect cannot be copied, starts a process, or takes note of what has become of clients, nothing is
drawn.
"""
FIRST_LOOKS, LOOKS = 1_000, 10_000
"""Participations that are looked at when the first client is given up, and after that number of them."""
_LATEST_S: Final = 1e7
_NOTING: Final = ("passed", "settle", "aggregated", "recorded", "of_round", "before_selection", "before_dispatch")


class Patience(NamedTuple):
    clients: int
    why: str = ""


def patience(run: Run, member: IntArray, given_up: Plan, give_up_after_s: float, looks: int) -> Patience | None:
    """Return after how many clients given up in a row no delivery is expected, and why; None where one is possible.

    Some participations of the clients of a server are looked at, in several draws, at instants of the next months:
    whether the law of dropout lets them end, how long they take, and whether the client stays online as long. Where
    each client takes the same time in all of them, too long, the first one given up is enough.
    """
    try:
        own = _copied(run)
        if own is None or not _by_the_laws(run, given_up, own):
            return None
        later_s, mean_s = np.geomspace(1.0, _LATEST_S, max(2, looks // member.size)), run.expected_s[:, member]
        whole_s = np.stack(
            [_whole_s(run, member, i, now, mean_s, own) for i, now in enumerate(later_s + run.env.now, 1)]
        )
        if whole_s.min() <= give_up_after_s:
            if own.effects or _one_stays(run, member, later_s.size, mean_s, give_up_after_s):
                return None
            return Patience(FEW, f": none of {whole_s.size:,} stays online for the {whole_s.min():.4g} s that it takes")
    except (PartError, ScenarioError):
        return None  # a part of the user's own need not know of later instants and other draws, nor a law of far ones
    same = np.allclose(whole_s.min(axis=0), whole_s.max(axis=0), rtol=1e-6)
    drawn = not same or bool(own.effects) or run.medium is not None or run.effects.of(Vanishing) is not None
    return Patience(FEW if drawn else 1, f": none takes less than {whole_s.min():.4g} s, of {whole_s.size:,}")


class _Own(NamedTuple):
    """Copies of the user's own effects that change a plan, and the clock that they read."""

    effects: Sequence[Effect] = ()
    clock: Any = None

    def plan(self, plan: Plan) -> None:
        if self.effects:
            self.clock.now = plan.start_s
        for effect in self.effects:
            effect.plan(plan)

    def due(self, plan: Plan, phase: int) -> None:
        for effect in self.effects:
            if phase in effect.phases:
                effect.due(plan, phase, plan.everyone)


_NONE: Final = _Own()


def _copied(run: Run) -> _Own | None:
    """Return copies of the user's own effects that change a plan; None where what they do later on is unknown."""
    own = [effect for effect in run.effects if not is_builtin(type(unchecked(effect)))]
    changing = [effect for effect in own if effect.says("plan") or effect.says("due")]
    if any(effect.says(member) for effect in changing for member in _NOTING):
        return None
    apart = copy.copy(run)
    clock = apart.env = SimpleNamespace(now=run.env.now)  # type: ignore[assignment]
    apart.media, apart.medium = (), None
    try:
        copies = copy.deepcopy(changing, {id(run): apart, id(run.env): clock})
        for effect in copies:
            effect.begin(apart)
    except Exception:  # a lock, an open file, a process on the clock
        return None
    return _Own(copies, clock)


def _by_the_laws(run: Run, given_up: Plan, own: _Own) -> bool:
    """Return whether a client was sent with the work, bits and links that the laws of the scenario give it."""
    plan = _plan(run, given_up.client, given_up.draw, given_up.start_s, own)
    as_usual = given_up.links is None and given_up.drawn is None and given_up.level is None
    alike = all(map(np.array_equal, (*plan.bits, plan.compute_s), (*given_up.bits, given_up.compute_s)))
    works = [plan.work.copy()]
    for phase in range(len(PHASES)):
        plan.begun_s[phase] = given_up.begun_s[phase]
        own.due(plan, phase)
        works.append(plan.work.copy())
    return as_usual and alike and any(np.array_equal(work, given_up.work) for work in works)


def _plan(run: Run, client: IntArray, draw: int, now_s: float, own: _Own) -> Plan:
    """Return what clients are sent with at an instant, by the laws and by copies of effects."""
    down, up, samples = run.workload.of(client)
    work_s = run.compute.duration_s(client, draw, samples)
    plan = Plan(client, 1, draw, Look(now_s, 1), bits=(down, up), samples=samples, compute_s=work_s)
    plan.begin(now_s)
    own.plan(plan)
    return plan


def _one_stays(run: Run, client: IntArray, windows: int, mean_s: FloatArray, within_s: float) -> bool:
    """Return whether a participation in one of the next windows of the clients ends in time, and before the window."""
    availability = run.availability
    if run.effects.of(Offline) is None or availability.kind != "timed":
        return True
    start_s = availability.earliest_s(client, run.env.now, 1)
    for draw in range(1, windows + 1):
        if not (opens := np.isfinite(start_s)).any():
            break
        client, mean_s, start_s = client[opens], mean_s[:, opens], start_s[opens]
        whole_s = _whole_s(run, client, draw, start_s, mean_s)
        for i, (begin_s, takes_s) in enumerate(zip(start_s.tolist(), np.minimum(whole_s, within_s), strict=True)):
            one = client[i : i + 1]
            leaves_s = availability.leaves_after_s(one, begin_s, draw, np.array([takes_s]))[0]
            if whole_s[i] <= within_s and leaves_s >= takes_s:
                return True
            start_s[i] = availability.earliest_s(one, np.nextafter(begin_s + min(leaves_s, takes_s), np.inf), draw)[0]
    return False


def _whole_s(
    run: Run, client: IntArray, draw: int, now_s: float | FloatArray, mean_s: FloatArray, own: _Own = _NONE
) -> FloatArray:
    """Return the seconds of a participation of each client from an instant on, inf if it is lost; means if shared."""
    due_s = np.full(client.size, now_s)
    plan = _plan(run, client, draw, float(due_s.min()), own)
    for phase in range(len(PHASES)):
        plan.begun_s[phase] = due_s
        own.due(plan, phase)
        plan.spent_s[phase] = mean_s[phase] if run.shared[phase] else run.seconds(plan, phase, slice(None), due_s)
        due_s = due_s + plan.spent_s[phase]
    whole_s = plan.whole_s()
    loss = run.effects.of(Vanishing)
    return whole_s if loss is None else np.where(loss.leaves_after_s(plan, whole_s) < whole_s, np.inf, whole_s)
