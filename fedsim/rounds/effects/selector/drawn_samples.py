"""Clients of a cohort draw samples among their own: the draw, its work, and the messages."""

import numpy as np

from fedsim.learning import Drawn, SampleDraws
from fedsim.rounds.effects.contract import BesidePhases
from fedsim.rounds.plan import Plan
from fedsim.rounds.run import Run


class DrawnSamples(BesidePhases):
    """Each client works on what it draws; one that draws nothing sends no bits, unless noise or masks hide that."""

    def __init__(self, *, hidden: bool) -> None:
        self._hidden = hidden

    def begin(self, run: Run) -> None:
        samples, self._run = run.workload.learner.samples, run
        # Without any data, as in a run about timing only, a client counts for one sample.
        self._known = bool(samples.any())
        self._draws = SampleDraws(run.streams, samples if self._known else np.ones_like(samples))

    def plan(self, plan: Plan) -> None:
        sampling = None if plan.cohort is None else plan.cohort.sampling
        if sampling is None:
            return
        client, run = plan.client, self._run
        count = self._draws.counts(client, sampling.probability, plan.draw)
        passed = run.workload.learner.work_samples(client, None, count) if self._known else np.zeros(client.size)
        silent = passed == 0 if self._known else count == 0
        count = np.where(silent, 0, count)
        plan.drawn = Drawn(sampling.probability, plan.draw, count, sampling.divisor)
        plan.counted, plan.samples = count, passed
        plan.compute_s = run.compute.duration_s(client, plan.draw, passed)
        plan.bits[0] = sampling.bits if sampling.has_model else sampling.bits + plan.bits[0]
        if not self._hidden:
            plan.silent = silent
            plan.bits[1] = np.where(silent, 0.0, plan.bits[1]) if silent.any() else plan.bits[1]
