"""What the clients of a cohort are to do: messages down and up, work, and the weights of their updates."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning import Model
from fedsim.rounds.aggregation.weightings import cohort_weights
from fedsim.rounds.clients.cohort import CohortRun
from fedsim.rounds.clients.sampled_work import SampledWork, SampledWorks
from fedsim.rounds.plan import Plan
from fedsim.rounds.server.context import ServerContext
from fedsim.selectors import Cohort


class Loads:
    """Makes the plans of cohorts."""

    def __init__(self, context: ServerContext) -> None:
        self.context = context
        self._weights = context.rules.weighting.of_clients(context.learner.samples, context.clients.streams)
        self._drew: SampledWork | None = None
        noised = context.protection.releases is not None and context.protection.releases.server is not None
        self._noised = context.selector.name if noised else ""

    def begin(self, order: int, number: int, cohort: Cohort, model: Model, repeat: IntArray, draw: int) -> CohortRun:
        """Return a cohort with its weights and shares of the work; `plan` follows."""
        context, client = self.context, cohort.client
        self._drew = drew = None if cohort.sampling is None else self._sampled.of(client, cohort.sampling, draw)
        weight, total = cohort_weights(cohort, self._weights_of(client, drew), context.rules.weighting, self._noised)
        run = CohortRun(order, number, cohort, model, weight, total, repeat)
        if cohort.work is not None:
            rounded = [context.learner.whole_steps(client, run.work, up=up) for up in (True, False)]
            # More than the usual work is to fit into some time.
            run.work = np.where(run.work > 1.0, rounded[1], rounded[0])
        return run

    def plan(
        self, run: CohortRun, draw: int, candidacy_draw: int, looked_s: float, now_s: float, limit_s: float
    ) -> Plan:
        """Return what the cohort that has begun is to do, for clients found available at ``looked_s``."""
        context, cohort, drew = self.context, run.cohort, self._drew
        client, workload = cohort.client, context.clients.workload
        down, up, samples = workload.of(client)
        if cohort.trained:
            # A client that has trained for a question has its update: the message down only asks for it.
            down, samples = 0.0, np.zeros(client.size)
        if drew is not None and cohort.sampling is not None:
            # Noise and masks hide who has drawn nothing.
            hidden = context.accountant is not None or context.protection.secure is not None
            (down, up), samples = drew.bits(cohort.sampling, down, up, hidden=hidden), drew.samples
            run.drawn, run.silent = drew.drawn, None if hidden else drew.silent
        compute_s = samples if cohort.trained else context.clients.compute.duration_s(client, draw, samples)
        plan = Plan(
            client,
            run.number,
            draw,
            looked_s=looked_s,
            candidacy_draw=candidacy_draw,
            bits=(down, up),
            samples=samples,
            compute_s=compute_s,
            work=run.work,
        )
        plan.cohort, plan.deadline_s, plan.update = cohort, now_s + limit_s, not cohort.trained
        return plan

    def _weights_of(self, client: IntArray, drew: SampledWork | None) -> FloatArray:
        """Return the weight of each client of a cohort; by what it has drawn, or what is stated, of samples."""
        counted = self.context.clients.workload.counted(client) if drew is None else drew.drawn.taken
        if counted is None:
            return self._weights[client]
        count: NDArray[Any] = np.zeros(self._weights.size, dtype=counted.dtype)
        count[client] = counted
        return self.context.rules.weighting.of_clients(count, self.context.clients.streams)[client]

    @cached_property
    def _sampled(self) -> SampledWorks:
        return SampledWorks(self.context.learner, self.context.clients.streams)
