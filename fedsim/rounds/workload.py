"""Bits and samples of one participation: a message down, local work, a message up."""

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning.sizes import Sizes
from fedsim.measurements import forward_passes, numbers_up
from fedsim.per_client import Values
from fedsim.units import BITS_PER_FLOAT32


class Narrow(NamedTuple):
    """A part of the model for each of n clients: its bits down and up, and its share of the work."""

    down_bits: FloatArray
    up_bits: FloatArray
    share: FloatArray


class Workload:
    """Bits and samples of one participation: a model down, training, an update up, and measurements beside these."""

    def __init__(
        self, learner: Sizes, needs: Collection[str] = (), masked: Callable[[float], float] | None = None
    ) -> None:
        self.learner = learner
        self.down_bits = learner.model_bits or 0.0
        self.beside_bits = numbers_up(needs) * BITS_PER_FLOAT32
        update_bits = learner.update_bits or 0.0
        self.up_bits = (update_bits if masked is None else masked(update_bits)) + self.beside_bits
        every_client, passes = np.arange(learner.samples.size, dtype=np.int64), forward_passes(needs)
        self.samples: FloatArray = learner.work_samples(every_client)
        if passes:
            self.samples = self.samples + passes * learner.probe_samples(every_client, None)

    def counted(self, client: IntArray) -> FloatArray | None:
        """Return the samples by which updates of clients are weighted, shape (n,); None for those of the clients."""
        return None

    def of(self, client: IntArray, narrow: Narrow | None = None) -> tuple[Values, Values, FloatArray]:
        """Return the bits down and up of clients, and their work in samples, for the whole model or a part of it."""
        samples = self.samples[client]
        if narrow is None:
            return self.down_bits, self.up_bits, samples
        return narrow.down_bits, narrow.up_bits + self.beside_bits, samples * narrow.share
