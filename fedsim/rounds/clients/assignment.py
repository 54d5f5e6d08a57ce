"""What a cohort is sent to do: a message down, local work, a message up."""

import math
from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning import Learner
from fedsim.measurements import forward_passes, numbers_up
from fedsim.network import Links
from fedsim.per_client import Values
from fedsim.units import BITS_PER_FLOAT32


class Workload:
    """Bits and samples of one participation: a model down, training, an update up, and measurements beside these."""

    def __init__(
        self, learner: Learner, needs: Collection[str] = (), masked: Callable[[float], float] | None = None
    ) -> None:
        self.learner = learner
        self.down_bits = learner.model_bits or 0.0
        beside = numbers_up(needs) * BITS_PER_FLOAT32
        update_bits = learner.update_bits or 0.0
        self.up_bits = (update_bits if masked is None else masked(update_bits)) + beside
        self.widths = widths = learner.widths
        self.down_sizes = np.array([self.down_bits]) if widths is None else widths.down_bits
        self.up_sizes = np.array([self.up_bits]) if widths is None else widths.up_bits + beside
        every_client, passes = np.arange(learner.samples.size, dtype=np.int64), forward_passes(needs)
        self.samples: FloatArray = learner.work_samples(every_client)
        if passes:
            self.samples = self.samples + passes * learner.probe_samples(every_client, None)

    def of(self, client: IntArray, level: IntArray | None) -> tuple[Values, Values, FloatArray]:
        """Return the bits down and up of clients and their work in samples; ``level`` is the place of each width."""
        samples = self.samples[client]
        if self.widths is None or level is None or not level.any():
            return self.down_bits, self.up_bits, samples
        return self.down_sizes[level], self.up_sizes[level], samples * self.widths.flops[level]


class Assignment(NamedTuple):
    """A message down, local work and a message up, for each of the n members of a cohort.

    ``draw`` is the key of the participations' random numbers: the number of the round if no client is sent twice in it.
    ``compute_s`` and ``samples`` are those of the whole work, and ``deadline_s`` is an instant, inf for none. Work is
    shortened to meet it, down to ``least_share``. ``cpu_frequency`` is a share of the full clock frequency.
    """

    client: IntArray
    number: int
    draw: int
    availability_s: float
    availability_draw: int
    bits: tuple[Values, Values]
    samples: FloatArray
    compute_s: FloatArray
    deadline_s: float = math.inf
    least_share: float = 1.0
    mean_uplink_s: FloatArray | None = None
    waits_for_all: bool = False
    why_all: str = "the policy waits for every client; choose one with a deadline"
    links: Links | None = None
    cpu_frequency: FloatArray | None = None
    transmit_power_dbm: FloatArray | None = None
