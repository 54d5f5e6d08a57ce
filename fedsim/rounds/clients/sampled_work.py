"""What clients of a cohort do that draw samples among their own: the draw, its work, and the messages."""

from typing import NamedTuple

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.learning import Drawn, SampleDraws
from fedsim.learning.sizes import Sizes
from fedsim.per_client import Values
from fedsim.selectors import Sampling
from fedsim.streams import Streams


class SampledWork(NamedTuple):
    """What the n clients of a cohort have drawn, and what follows."""

    drawn: Drawn
    samples: FloatArray
    silent: BoolArray

    def bits(
        self, sampling: Sampling, model_bits: Values, update_bits: Values, *, hidden: bool
    ) -> tuple[Values, Values]:
        down = sampling.bits if sampling.has_model else sampling.bits + model_bits
        return down, update_bits if hidden or not self.silent.any() else np.where(self.silent, 0.0, update_bits)


class SampledWorks:
    def __init__(self, learner: Sizes, streams: Streams) -> None:
        samples, self._learner = learner.samples, learner
        # Without any data, as in a run about timing only, a client counts for one sample.
        self._known = bool(samples.any())
        self._draws = SampleDraws(streams, samples if self._known else np.ones_like(samples))

    def of(self, client: IntArray, sampling: Sampling, number: int) -> SampledWork:
        count = self._draws.counts(client, sampling.probability, number)
        passed = self._learner.work_samples(client, None, count) if self._known else np.zeros(client.size)
        silent = passed == 0 if self._known else count == 0
        count = np.where(silent, 0, count)
        return SampledWork(Drawn(sampling.probability, number, count, sampling.divisor), passed, silent)
