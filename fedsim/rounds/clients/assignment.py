"""What a cohort is sent to do: hear a message, work, answer."""

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsim.learning import Learner, Release
from fedsim.measurements import forward_passes, numbers_up
from fedsim.units import BITS_PER_FLOAT32


@dataclass(frozen=True)
class Workload:
    """A model down, training and what is measured beside it, an update and the numbers measured up.

    Attributes
    ----------
    learner : Learner
    needs : what the selector wants to be told of delivered updates, some of `fedsim.measurements.MEASUREMENTS`
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


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """A message down, work and a message up, for each member of a cohort.

    Attributes
    ----------
    client : ids, shape (n,)
    number : round in which it begins
    turn : what the members' luck of this errand is keyed by: the round where a client is sent once a round at most
    availability_draw : draw of availability that holds when the clients are looked at
    opens_s : instant at which the clients' presence is looked at
    bits : sizes of the message down and of the message up
    samples : that each passes through its model, shape (n,)
    compute_s : how long the work of each takes, shape (n,)
    releases : filled with the release of every member whose upload starts, by position; None if nothing is released
    share : shape (n,), part of the work that each does; falls for those that see that they would be late
    ends_s : instant from which on an answer is late
    least_share : how far a member shortens its work to be in time, as a share of what it shall do; 1 for not at all
    mean_uplink_s : how long the message up takes each on average, shape (n,); None unless work may be shortened
    endless : whether the server waits for every answer, however long it takes
    """

    client: NDArray[np.int64]
    number: int
    turn: int
    availability_draw: int
    opens_s: float
    bits: tuple[float, float]
    samples: NDArray[np.float64]
    compute_s: NDArray[np.float64]
    releases: dict[int, Release] | None
    share: NDArray[np.float64]
    ends_s: float = math.inf
    least_share: float = 1.0
    mean_uplink_s: NDArray[np.float64] | None = None
    endless: bool = False

    @property
    def may_shorten(self) -> bool:
        """Whether members shorten their work to be in time."""
        return self.mean_uplink_s is not None and math.isfinite(self.ends_s)
