"""A client that expects to be late does less work: whole steps that leave time for an upload of mean duration."""

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.history.outcomes import COMPUTE
from fedsim.learning.sizes import Sizes
from fedsim.per_client import at
from fedsim.rounds.effects.contract import NEVER, Effect, Members
from fedsim.rounds.plan import Plan
from fedsim.rounds.run import Run


class PartialWork(Effect):
    """Work is shortened once the model has arrived, down to a share of it."""

    may_end = False
    phases = frozenset({COMPUTE})

    def __init__(self, least_share: float, learner: Sizes) -> None:
        self._least_share, self._learner = least_share, learner

    def begin(self, run: Run) -> None:
        self._links = run.links
        self._mean_s: dict[float, FloatArray] = {}

    def due(self, plan: Plan, phase: int, members: Members) -> None:
        if not plan.update or plan.deadline_s == NEVER:
            return
        members = np.atleast_1d(members)
        whole_s, share = plan.compute_s[members], plan.work[members]
        left_s = plan.deadline_s - plan.begun_s[COMPUTE][members] - self._mean_uplink_s(plan, members)
        late = (whole_s > 0) & (whole_s * share > left_s)
        if late.any():
            fits = np.divide(left_s, whole_s, out=share.copy(), where=late)
            wished = np.clip(fits, self._least_share * share, share)
            steps = self._learner.whole_steps(plan.client[members], wished, up=False)
            plan.work[members] = np.where(late, np.minimum(share, steps), share)

    def _mean_uplink_s(self, plan: Plan, members: IntArray) -> FloatArray:
        client, found_s = plan.client[members], np.empty(members.size)
        sizes = np.broadcast_to(at(plan.bits[1], members), members.shape)
        for bits in np.unique(sizes).tolist():
            if bits not in self._mean_s:
                self._mean_s[bits] = self._links.expected_uplink_s(bits)
            some = sizes == bits
            found_s[some] = self._mean_s[bits][client[some]]
        return found_s
