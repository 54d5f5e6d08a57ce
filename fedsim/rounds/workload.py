"""Bits and samples of one participation: a message down, local work, a message up."""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning.sizes import Sizes
from fedsim.per_client import Values


class Beside(NamedTuple):
    """What a participation takes beside training and its update: bits up, and samples, one number or shape (K,)."""

    bits: float = 0.0
    samples: Values = 0.0


class Narrow(NamedTuple):
    """A part of the model for each of n clients: its bits down and up, and its share of the work."""

    down_bits: FloatArray
    up_bits: FloatArray
    share: FloatArray


_NOTHING: Final = Beside()


class Workload:
    """Bits and samples of one participation: a model down, training, an update up, and what comes beside these.

    The size of the update as it is sent follows from that of the update in clear.
    """

    def __init__(self, learner: Sizes, beside: Beside = _NOTHING, sent_bits: Callable[[float], float] = float) -> None:
        self.learner, self.sent_bits = learner, sent_bits
        self.down_bits, self.beside_bits, self.beside_samples = learner.model_bits or 0.0, *beside
        self.up_bits = sent_bits(learner.update_bits or 0.0) + beside.bits
        self.samples: FloatArray = learner.work_samples(np.arange(learner.samples.size, dtype=np.int64))
        self.samples = self.samples + beside.samples

    def counted(self, client: IntArray) -> FloatArray | None:
        """Return the samples by which updates of clients are weighted, shape (n,); None for those of the clients."""
        return None

    def of(self, client: IntArray, narrow: Narrow | None = None) -> tuple[Values, Values, FloatArray]:
        """Return the bits down and up of clients, and their work in samples, for the whole model or a part of it."""
        samples = self.samples[client]
        if narrow is None:
            return self.down_bits, self.up_bits, samples
        return narrow.down_bits, narrow.up_bits + self.beside_bits, samples * narrow.share
