"""After how many clients given up in a row no delivery is expected any more, where the laws of times say so."""

from typing import Final, NamedTuple

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.code_digest import is_builtin
from fedsim.errors import PartError, ScenarioError
from fedsim.history.outcomes import PHASES
from fedsim.rounds.effects.leaving import Offline, Vanishing
from fedsim.rounds.plan import Look, Plan
from fedsim.rounds.run import Run

FEW: Final = 100
"""Clients given up in a row that are enough where no participation that the laws of times draw is short enough.

Where an effect of the user's own changes what clients are sent with, nothing is drawn: what it does to a participation
that never takes place cannot be asked without a trace in it.
"""
FIRST_LOOKS, LOOKS = 1_000, 10_000
"""Participations that are looked at when the first client is given up, and after that number of them."""
_LATEST_S: Final = 1e7


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
        if not _by_the_laws(run, given_up):
            return None
        later_s, mean_s = np.geomspace(1.0, _LATEST_S, max(2, looks // member.size)), run.expected_s[:, member]
        whole_s = np.stack([_whole_s(run, member, i, now, mean_s) for i, now in enumerate(later_s + run.env.now, 1)])
        if whole_s.min() <= give_up_after_s:
            if _one_stays(run, member, later_s.size, mean_s, give_up_after_s):
                return None
            return Patience(FEW, f": none of {whole_s.size:,} stays online for the {whole_s.min():.4g} s that it takes")
    except (PartError, ScenarioError):
        return None  # a part of the user's own need not know of later instants and other draws, nor a law of far ones
    same = np.allclose(whole_s.min(axis=0), whole_s.max(axis=0), rtol=1e-6)
    drawn = not same or run.medium is not None or run.effects.of(Vanishing) is not None
    return Patience(FEW if drawn else 1, f": none takes less than {whole_s.min():.4g} s, of {whole_s.size:,}")


def _by_the_laws(run: Run, given_up: Plan) -> bool:
    """Return whether a client was sent with the work, bits and links that the laws of the scenario give it."""
    own = (effect for effect in run.effects if not is_builtin(type(effect)))
    if any(effect.says("plan") or effect.says("due") for effect in own):
        return False
    client, (down, up, samples) = given_up.client, run.workload.of(given_up.client)
    compute_s = run.compute.duration_s(client, given_up.draw, samples)
    as_usual = given_up.links is None and given_up.drawn is None and given_up.level is None
    return as_usual and given_up.bits == [down, up] and np.array_equal(given_up.compute_s, compute_s)


def _one_stays(run: Run, client: IntArray, windows: int, mean_s: FloatArray, within_s: float) -> bool:
    """Return whether a participation in one of the next windows of the clients ends in time, and before the window."""
    availability = run.availability
    if run.effects.of(Offline) is None or availability.kind != "timed":
        return True
    start_s = availability.earliest_s(client, run.env.now, 1)
    for draw in range(1, windows + 1):
        opens = np.isfinite(start_s)
        client, mean_s, start_s = client[opens], mean_s[:, opens], start_s[opens]
        whole_s = _whole_s(run, client, draw, start_s, mean_s)
        for i, (begin_s, takes_s) in enumerate(zip(start_s.tolist(), np.minimum(whole_s, within_s), strict=True)):
            one = client[i : i + 1]
            leaves_s = availability.leaves_after_s(one, begin_s, draw, np.array([takes_s]))[0]
            if whole_s[i] <= within_s and leaves_s >= takes_s:
                return True
            start_s[i] = availability.earliest_s(one, np.nextafter(begin_s + min(leaves_s, takes_s), np.inf), draw)[0]
    return False


def _whole_s(run: Run, client: IntArray, draw: int, now_s: float | FloatArray, mean_s: FloatArray) -> FloatArray:
    """Return the seconds of a participation of each client that starts at an instant, inf if it is lost.

    On a shared medium they are the mean ones of a client that has it to itself.
    """
    down, up, samples = run.workload.of(client)
    work_s, due_s = run.compute.duration_s(client, draw, samples), np.full(client.size, now_s)
    plan = Plan(client, 1, draw, Look(run.env.now, 1), bits=(down, up), samples=samples, compute_s=work_s)
    plan.begin(run.env.now)
    for phase in range(len(PHASES)):
        plan.spent_s[phase] = mean_s[phase] if run.shared[phase] else run.seconds(plan, phase, slice(None), due_s)
        due_s = due_s + plan.spent_s[phase]
    whole_s = plan.whole_s()
    loss = run.effects.of(Vanishing)
    return whole_s if loss is None else np.where(loss.leaves_after_s(plan, whole_s) < whole_s, np.inf, whole_s)
