"""What the clients of a cohort are to do: messages down and up, work, and the weights of their updates."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning import Model
from fedsim.rounds.aggregation.weightings import cohort_weights
from fedsim.rounds.clients.cohort import CohortRun
from fedsim.rounds.plan import Look, Plan
from fedsim.rounds.server.context import ServerContext
from fedsim.selectors import Cohort


class Loads:
    """Makes the plans of cohorts, and weighs them."""

    def __init__(self, context: ServerContext) -> None:
        self.context = context
        self._weights = context.rules.weighting.of_clients(context.learner.samples, context.clients.streams)

    def begin(self, order: int, number: int, cohort: Cohort, model: Model, repeat: IntArray) -> CohortRun:
        """Return a cohort with its shares of the work; `plan` follows."""
        run = CohortRun(order, number, cohort, model, repeat)
        if cohort.work is not None:
            rounded = [self.context.learner.whole_steps(cohort.client, run.work, up=up) for up in (True, False)]
            # More than the usual work is to fit into some time.
            run.work = np.where(run.work > 1.0, rounded[1], rounded[0])
        return run

    def plan(self, run: CohortRun, draw: int, look: Look, deadline_s: float) -> Plan:
        cohort, clients = run.cohort, self.context.clients
        down, up, samples = clients.workload.of(cohort.client)
        if cohort.trained:
            # A client that has trained for a question has its update: the message down only asks for it.
            down, samples = 0.0, np.zeros(cohort.client.size)
        plan = Plan(
            cohort.client,
            run.number,
            draw,
            look,
            bits=(down, up),
            samples=samples,
            compute_s=samples if cohort.trained else clients.compute.duration_s(cohort.client, draw, samples),
            work=run.work,
        )
        plan.counted = clients.workload.counted(cohort.client)
        plan.cohort, plan.deadline_s, plan.update = cohort, deadline_s, not cohort.trained
        return plan

    def weigh(self, run: CohortRun) -> None:
        """Weigh the updates of a cohort whose plan holds."""
        each, weighting = self._weights_of(run.cohort.client, run.plan.counted), self.context.rules.weighting
        run.weight, run.total = cohort_weights(run.cohort, each, weighting)

    def _weights_of(self, client: IntArray, counted: NDArray[Any] | None) -> FloatArray:
        """Return the weight of each client of a cohort; by what it has drawn, or what is stated, of samples."""
        if counted is None:
            return self._weights[client]
        count: NDArray[Any] = np.zeros(self._weights.size, dtype=counted.dtype)
        count[client] = counted
        return self.context.rules.weighting.of_clients(count, self.context.clients.streams)[client]
