"""Each client trains a part of the model, narrower where a deadline is near; bits and work shrink with it."""

from functools import cached_property
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning.models.layout import Widths as WidthsOfModel
from fedsim.rounds.effects.contract import NEVER, BesidePhases
from fedsim.rounds.plan import Plan
from fedsim.rounds.run import Run
from fedsim.rounds.workload import Narrow

_WHOLE: Final = 0


class Widths(BesidePhases):
    """Gives each client the width that it was given, or else the largest one that fits the deadline.

    A width fits if the mean durations (`Run.expected_s`) of download, work and upload add up to no more than the time
    left. A client that no width fits gets the smallest.
    """

    def __init__(self, widths: WidthsOfModel) -> None:
        self._widths = widths

    def begin(self, run: Run) -> None:
        self._run = run

    def plan(self, plan: Plan) -> None:
        if plan.cohort is None or not plan.update:
            return
        plan.level = level = self._levels(plan.client, plan.deadline_s - plan.start_s)
        if np.any(level != _WHOLE):
            run, widths = self._run, self._widths
            narrow = Narrow(widths.down_bits[level], widths.up_bits[level], widths.flops[level])
            *plan.bits, plan.samples = run.workload.of(plan.client, narrow)
            plan.compute_s = run.compute.duration_s(plan.client, plan.draw, plan.samples)

    def _levels(self, client: IntArray, left_s: float) -> IntArray:
        """Return the place of each client's width among those of the learner."""
        if self._widths.given is not None:
            return self._widths.given[client]
        if left_s == NEVER:
            return np.zeros(client.size, dtype=np.int64)
        fits = self._duration_s[:, client] <= left_s
        fits[-1] = True
        return np.asarray(fits.argmax(axis=0), dtype=np.int64)

    @cached_property
    def _duration_s(self) -> FloatArray:
        """Mean duration of a participation of each client with each width, shape (L, K)."""
        run, widths = self._run, self._widths
        up_bits = widths.up_bits + run.workload.beside_bits
        return np.stack(
            [
                run.links.expected_downlink_s(down)
                + run.compute.expected_s(run.workload.samples * flops)
                + run.links.expected_uplink_s(up)
                for down, up, flops in zip(
                    widths.down_bits.tolist(), up_bits.tolist(), widths.flops.tolist(), strict=True
                )
            ]
        )
