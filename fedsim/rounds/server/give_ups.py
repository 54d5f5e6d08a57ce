"""After how many clients given up in a row no delivery is expected any more, where the laws of times say so."""

from typing import Final, NamedTuple

import numpy as np

from fedsim.code_digest import is_builtin
from fedsim.history.outcomes import PHASES, UPLINK
from fedsim.rounds.plan import Look, Plan
from fedsim.rounds.run import Run

FEW: Final = 100
"""Clients given up in a row that are enough where no participation that the laws of times draw is short enough."""
_LOOKS: Final = 10_000
_MOST_DRAWS: Final = 200
_LATEST_S: Final = 1e7


class Patience(NamedTuple):
    clients: int
    why: str = ""


def patience(run: Run, given_up: Plan, give_up_after_s: float) -> Patience | None:
    """Return after how many clients given up in a row no delivery is expected, and why; None where one is possible.

    The times of all clients are looked at in some draws, and at some instants of the next months. Where each client
    takes the same time in all of them, too long, the first one given up is enough.
    """
    parts = (run.links, run.compute, *run.effects)
    as_usual = given_up.links is None and given_up.cpu_frequency is None and given_up.drawn is None
    if not (as_usual and given_up.level is None and all(is_builtin(type(part)) for part in parts)):
        return None
    client, phases = np.arange(run.clients), range(len(PHASES))
    down, up, samples = run.workload.of(client)
    least_s, most_s, expected_s = np.full(client.size, np.inf), np.zeros(client.size), run.expected_s
    draws = min(max(2, _LOOKS // client.size), _MOST_DRAWS)
    for draw, later_s in enumerate(np.geomspace(1.0, _LATEST_S, draws).tolist(), 1):
        work_s = run.compute.duration_s(client, draw, samples)
        plan = Plan(client, 1, draw, Look(run.env.now, 1), bits=(down, up), samples=samples, compute_s=work_s)
        start_s, whole_s = np.full(client.size, run.env.now + later_s), np.zeros(client.size)
        for phase in phases:
            # Alone on a shared medium, on average.
            took_s = expected_s[phase] if run.shared[phase] else run.seconds(plan, phase, slice(None), start_s)
            start_s, whole_s = start_s + took_s, whole_s + took_s
        least_s, most_s = np.minimum(least_s, whole_s), np.maximum(most_s, whole_s)
    if least_s.min() <= give_up_after_s:
        return None
    constant = not any(run.shared[phase] for phase in (0, UPLINK)) and np.allclose(least_s, most_s, rtol=1e-6)
    return Patience(1 if constant else FEW, f": no participation takes less than {least_s.min():.4g} s")
