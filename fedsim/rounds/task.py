"""What a participation is made of: how many bits down and up, and how many samples of work."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsim.learning import Learner
from fedsim.needs import forward_passes, numbers_up
from fedsim.units import BITS_PER_FLOAT32


@dataclass(frozen=True)
class Task:
    """A model down, training and what is measured beside it, an update and the numbers measured up.

    Attributes
    ----------
    learner : Learner
    needs : what the selector wants to be told of delivered updates, some of `fedsim.needs.MEASURES`
    """

    learner: Learner
    needs: Collection[str] = ()

    @property
    def down_bits(self) -> float:
        """Size of a model; 0 where nobody said."""
        return self.learner.model_bits or 0.0

    @property
    def up_bits(self) -> float:
        """Size of an update and of the numbers that the selector wants beside it."""
        return self.down_bits + numbers_up(self.needs) * BITS_PER_FLOAT32

    def samples(self, client: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how many samples' worth of training the whole work of each client is, shape (n,)."""
        looks = forward_passes(self.needs)
        work = self.learner.work_samples(client)
        return work + looks * self.learner.probe_samples(client, None) if looks else work
