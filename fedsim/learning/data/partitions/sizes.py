"""Independent and identically distributed samples, as many for each client as are asked for."""

from typing import Annotated

import numpy as np

from fedsim.arrays import IntArray
from fedsim.errors import ScenarioError
from fedsim.learning.data.partitions.contracts import Split
from fedsim.learning.data.partitions.shares import slices
from fedsim.per_client import ClientValues, PerClient, values_of
from fedsim.streams import Streams


class SizesPartition(Split):
    """A random permutation in slices of given sizes; what is left over belongs to no client.

    Attributes
    ----------
    samples : int >= 0
        Samples of each client: one number for all, or a value for each (`fedsim.per_client`). Together they are at most
        the training samples of the data set.
    """

    samples: Annotated[ClientValues, PerClient(ge=0, whole=True)]

    def assign(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
        sizes = np.empty(clients, dtype=np.int64)
        sizes[:] = values_of(self, "samples", clients, streams, "learning.split")
        if sizes.sum() > labels.size:
            raise ScenarioError(
                f"learning.split.samples: {sizes.sum()} samples for {clients} clients are not allowed; the training "
                f"set has {labels.size}"
            )
        return slices(streams.generator("split").permutation(labels.size), sizes)
