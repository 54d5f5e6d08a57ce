"""What the rest of fedsim asks of devices."""

from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fedsim.streams import Streams

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class ComputeTimes(Protocol):
    """How long local work takes on each of the K devices of one run."""

    def duration_s(self, client: IntArray, round_: int, samples: FloatArray) -> FloatArray:
        """Return how long each client's work takes in this round, shape (n,).

        Parameters
        ----------
        client : ids in 0..K-1, shape (n,)
        round_ : int, from 1
        samples : how many samples each passes through its model, >= 0, shape (n,)
        """
        ...

    def expected_s(self, samples: FloatArray) -> FloatArray:
        """Return the mean duration for every client, given every client's samples, both of shape (K,)."""
        ...


class ComputeTime(Protocol):
    """A scenario's law of compute times: settings that build the times of one run.

    Attributes
    ----------
    uses_samples : whether it matters how many samples a client works through
    """

    uses_samples: ClassVar[bool]

    def build(self, clients: int, streams: Streams) -> ComputeTimes:
        """Return the times of one run for this many clients."""
        ...


class Dropout(Protocol):
    """When a client vanishes in the middle of a participation.

    Attributes
    ----------
    possible : whether anybody can drop out at all
    """

    possible: ClassVar[bool]

    def time_to_dropout_s(self, client: IntArray, round_: int, streams: Streams) -> FloatArray:
        """Return how long after the start of its participation each client vanishes; `inf` for never."""
        ...
