"""As many independent and identically distributed samples for each client."""

from fedsim.arrays import IntArray
from fedsim.learning.data.partitions.contracts import Split
from fedsim.learning.data.partitions.shares import require
from fedsim.streams import Streams


class EqualPartition(Split):
    """Independent and identically distributed: a random permutation in equal slices of floor(N/K) samples.

    Examples
    --------
    >>> import numpy as np
    >>> from fedsim.streams import Streams
    >>> parts = EqualPartition().assign(np.zeros(32, dtype=np.int64), 1, 3, Streams(0))
    >>> [part.size for part in parts]  # floor(32 / 3) each, and 2 are left over
    [10, 10, 10]
    """

    def assign(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
        require(labels.size, clients, 1)
        size = labels.size // clients
        order = streams.generator("split").permutation(labels.size)
        return list(order[: clients * size].reshape(clients, size))
