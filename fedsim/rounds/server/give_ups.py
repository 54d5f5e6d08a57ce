"""After how many clients given up in a row no delivery is expected any more, where the laws of times say so."""

from typing import Final, NamedTuple

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.code_digest import is_builtin
from fedsim.errors import PartError
from fedsim.history.outcomes import PHASES
from fedsim.rounds.effects.leaving import Vanishing
from fedsim.rounds.plan import Look, Plan
from fedsim.rounds.run import Run

FEW: Final = 100
"""Clients given up in a row that are enough where no participation that the laws of times draw is short enough."""
FIRST_LOOKS, LOOKS = 1_000, 10_000
"""Participations that are looked at when the first client is given up, and after that number of them."""
_LATEST_S: Final = 1e7


class Patience(NamedTuple):
    clients: int
    why: str = ""


def patience(run: Run, member: IntArray, given_up: Plan, give_up_after_s: float, looks: int) -> Patience | None:
    """Return after how many clients given up in a row no delivery is expected, and why; None where one is possible.

    Some participations of the clients of a server are looked at, in several draws, at instants of the next months:
    whether the law of dropout lets them end, and how long they take. Where each client takes the same time in all of
    them, too long, the first one given up is enough.
    """
    try:
        if not _by_the_laws(run, given_up):
            return None
        later_s, mean_s = np.geomspace(1.0, _LATEST_S, max(2, looks // member.size)), run.expected_s[:, member]
        whole_s = np.stack([_whole_s(run, member, i, now, mean_s) for i, now in enumerate(later_s + run.env.now, 1)])
    except PartError:
        return None  # a part of the user's own need not know of later instants and other draws
    if whole_s.min() <= give_up_after_s:
        return None
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


def _whole_s(run: Run, client: IntArray, draw: int, now_s: float, mean_s: FloatArray) -> FloatArray:
    """Return the seconds of a participation of each client that starts at an instant, inf if it is lost.

    On a shared medium they are the mean ones of a client that has it to itself.
    """
    down, up, samples = run.workload.of(client)
    work_s, due_s = run.compute.duration_s(client, draw, samples), np.full(client.size, now_s)
    plan = Plan(client, 1, draw, Look(now_s, 1), bits=(down, up), samples=samples, compute_s=work_s)
    plan.begin(now_s)
    for phase in range(len(PHASES)):
        plan.spent_s[phase] = mean_s[phase] if run.shared[phase] else run.seconds(plan, phase, slice(None), due_s)
        due_s = due_s + plan.spent_s[phase]
    whole_s = plan.whole_s()
    loss = run.effects.of(Vanishing)
    return whole_s if loss is None else np.where(loss.leaves_after_s(plan, whole_s) < whole_s, np.inf, whole_s)
