"""Numbers that clients send beside their updates: what they take, and what makes them private."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import IntArray
from fedsim.learning.sizes import Sizes
from fedsim.measurements import forward_passes, numbers_up
from fedsim.privacy import SideInformation
from fedsim.privacy.side_information import released_numbers
from fedsim.rounds.effects.contract import BesidePhases
from fedsim.rounds.plan import Plan
from fedsim.rounds.run import Run
from fedsim.rounds.workload import Beside
from fedsim.units import BITS_PER_FLOAT32


def beside(learner: Sizes, needs: Collection[str]) -> Beside:
    """Return the bits of the numbers that a selector needs beside an update, and the samples that they take."""
    everyone, passes = np.arange(learner.samples.size, dtype=np.int64), forward_passes(needs)
    samples = passes * learner.probe_samples(everyone, None) if passes else 0.0
    return Beside(numbers_up(needs) * BITS_PER_FLOAT32, samples)


class SideNumbers(BesidePhases):
    """Numbers of clients are made private before they are sent, beside updates or in response to a question.

    Without learning there are no numbers, and each stays NaN. Those that are stated from outside are made private too,
    where they are known.
    """

    def __init__(self, side: SideInformation, *, computed: bool) -> None:
        self._side, self._computed, self.from_outside = side, computed, False

    def begin(self, run: Run) -> None:
        self._streams = run.streams

    def sends(self, plan: Plan, members: IntArray, numbers: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        if not plan.number_releases or not (self._computed or self.from_outside):
            return numbers
        releases = [plan.number_releases[i] for i in members.tolist()]
        keys = zip(plan.client[members].tolist(), [release.index for release in releases], strict=True)
        generators = (self._streams.generator("side-information", *key) for key in keys)
        sent = released_numbers(self._side, numbers, [release.epsilon for release in releases], generators)
        if not self.from_outside:
            return sent
        # A number that was not reported is not sent either.
        return {name: np.where(np.isnan(numbers[name]), np.nan, column) for name, column in sent.items()}
