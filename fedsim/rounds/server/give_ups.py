"""After how many clients given up in a row no delivery is expected any more, where the laws of times say so."""

from typing import Final, NamedTuple

import numpy as np

from fedsim.code_digest import is_builtin
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


def patience(run: Run, given_up: Plan, give_up_after_s: float, looks: int) -> Patience | None:
    """Return after how many clients given up in a row no delivery is expected, and why; None where one is possible.

    Some participations of all clients are looked at, in several draws, at instants of the next months: whether the law
    of dropout lets them end, and how long they take. Where each client takes the same time in all of them, too long,
    the first one given up is enough.
    """
    parts = (run.links, run.compute, *run.effects)
    as_usual = given_up.links is None and given_up.cpu_frequency is None and given_up.drawn is None
    if not (as_usual and given_up.level is None and all(is_builtin(type(part)) for part in parts)):
        return None
    client, phases = np.arange(run.clients), range(len(PHASES))
    down, up, samples = run.workload.of(client)
    least_s, most_s, expected_s = np.full(client.size, np.inf), np.zeros(client.size), run.expected_s
    losses = [effect for effect in run.effects if type(effect) is Vanishing]
    for draw, later_s in enumerate(np.geomspace(1.0, _LATEST_S, max(2, looks // client.size)).tolist(), 1):
        work_s = run.compute.duration_s(client, draw, samples)
        plan = Plan(client, 1, draw, Look(run.env.now, 1), bits=(down, up), samples=samples, compute_s=work_s)
        plan.begin(run.env.now)
        start_s, whole_s = np.full(client.size, run.env.now + later_s), np.zeros(client.size)
        for phase in phases:
            # Alone on a shared medium, on average.
            took_s = expected_s[phase] if run.shared[phase] else run.seconds(plan, phase, slice(None), start_s)
            plan.spent_s[phase] = took_s
            start_s, whole_s = start_s + took_s, whole_s + took_s
        for loss in losses:
            whole_s = np.where(loss.leaves_after_s(plan, whole_s) < whole_s, np.inf, whole_s)
        least_s, most_s = np.minimum(least_s, whole_s), np.maximum(most_s, whole_s)
    if least_s.min() <= give_up_after_s:
        return None
    drawn = losses or run.medium is not None or not np.allclose(least_s, most_s, rtol=1e-6)
    return Patience(FEW if drawn else 1, f": none takes less than {least_s.min():.4g} s, of {draw * client.size:,}")
