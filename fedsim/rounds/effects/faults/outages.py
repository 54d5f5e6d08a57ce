"""Link failures during participations: transfers in progress are lost, and uploads wait for their link."""

import math

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.clock import TIE
from fedsim.history.outcomes import DOWNLINK, UPLINK
from fedsim.rounds.effects.contract import Limit, Members
from fedsim.rounds.effects.leaving import UpAndDown
from fedsim.rounds.plan import Plan


class Outages(UpAndDown):
    """A transfer in progress is lost with its link, and an upload waits for it."""

    phases = frozenset({DOWNLINK, UPLINK})

    def plan(self, plan: Plan) -> None:
        """Note when each link fails, if it works now: first, and once its upload has begun, shape (2, n)."""
        works, left_s = self._up.state(plan.client, plan.look.time_s)
        fails_s = plan.look.time_s + np.where(works, left_s, 0.0)
        plan.notes[self] = np.stack([fails_s, fails_s])

    def wait_s(self, plan: Plan, phase: int, members: Members) -> tuple[FloatArray | float, float]:
        """Let an upload that is due during an outage wait for its end."""
        if phase != UPLINK:
            return 0.0, 0.0
        members = np.atleast_1d(members)
        fails_s, due_s = plan.notes[self][1], plan.flows_s(phase, members)
        waits_s = np.zeros(members.size)
        for k in np.flatnonzero((fails_s[members] <= due_s) & (due_s < math.inf)).tolist():
            i, since_s = int(members[k]), float(due_s[k])
            back_s = since_s
            while fails_s[i] <= back_s < math.inf:
                works, left_s = self._up.state(plan.client[i : i + 1], back_s)
                change_s = max(back_s + float(left_s[0]), math.nextafter(back_s, math.inf))
                if works[0]:
                    fails_s[i] = change_s
                else:
                    back_s = change_s
            waits_s[k] = back_s - since_s
        return waits_s, 0.0

    def limit(self, plan: Plan, phase: int, members: Members) -> Limit | None:
        """Lose a transfer with its link; one that ends at the instant of the failure has ended."""
        fails_s, due_s = plan.notes[self][phase // 2][members], plan.begun_s[phase][members]
        ends_s = due_s + plan.queue_s[phase][members] + plan.spent_s[phase][members]
        return Limit(after_s=np.where(ends_s > fails_s * (1.0 + TIE), fails_s - due_s, np.inf))
