"""Bits and samples of one participation: a message down, local work, a message up."""

from collections.abc import Callable, Collection

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning import Learner
from fedsim.measurements import forward_passes, numbers_up
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

    def counted(self, client: IntArray) -> FloatArray | None:
        """Return the samples by which updates of clients are weighted, shape (n,); None for those of the clients."""
        return None

    def of(self, client: IntArray, level: IntArray | None) -> tuple[Values, Values, FloatArray]:
        """Return the bits down and up of clients and their work in samples; ``level`` is the place of each width."""
        samples = self.samples[client]
        if self.widths is None or level is None or not level.any():
            return self.down_bits, self.up_bits, samples
        return self.down_sizes[level], self.up_sizes[level], samples * self.widths.flops[level]
