"""Independent and identically distributed samples: as many for each client, as many as are asked for, or by a law."""

from typing import Annotated

import numpy as np
from pydantic import Field

from fedsim.arrays import IntArray
from fedsim.errors import ScenarioError
from fedsim.learning.data.partitions.contracts import Split
from fedsim.learning.data.partitions.shares import OR_FEWER, require, shared, slices
from fedsim.per_client import ClientValues, PerClient, values_of
from fedsim.streams import Streams
from fedsim.units import Exponent


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


class LogNormalPartition(Split):
    """Log-normal sizes, ``log r ~ Normal(0, sigma^2)``: the greater sigma, the more a few clients have.

    Without ``mean_samples`` all samples are divided in proportion to r. With it, sizes are those of the code of
    FedSampling (Qi et al., "FedSampling: A better sampling strategy for federated learning", IJCAI 2023): client k has
    ``ceil(mean_samples r_k / mean(ceil(r)))`` samples, as long as there are any. Further samples belong to no client,
    and clients after the last sample have none. Samples are in random order.

    Attributes
    ----------
    sigma : float >= 0
        4 in the paper, 2.5 in its code.
    mean_samples : float > 0, optional
        Samples of a client on average, before rounding up; 2 in the paper.
    min_samples : int >= 0
        Smallest size without ``mean_samples``. With 0 a client may be left without samples.
    """

    sigma: Annotated[float, Field(ge=0, le=50)]
    mean_samples: Annotated[float, Field(gt=0)] | None = None
    min_samples: Annotated[int, Field(ge=0)] = 1

    def assign(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
        rng = streams.generator("split")
        ratios = np.exp(self.sigma * rng.standard_normal(clients))
        if self.mean_samples is None:
            require(labels.size, clients, self.min_samples, OR_FEWER)
            sizes = shared(labels.size, ratios, self.min_samples, streams.generator("split-ties"))
        else:
            # Numbers of samples beyond the data set are cut below, and would not fit an integer.
            wished = np.minimum(np.ceil(self.mean_samples * ratios / np.ceil(ratios).mean()), labels.size)
            ends = np.minimum(np.cumsum(wished), labels.size).astype(np.int64)
            sizes = np.diff(ends, prepend=0)
        return slices(rng.permutation(labels.size), sizes)


class ZipfPartition(Split):
    """Zipf sizes: the client of rank i has a share of the samples in proportion to ``i^-exponent``.

    Ranks are drawn at random, sizes are not: they are whole numbers by largest remainders, and sum to all samples.
    Samples are in random order.

    Attributes
    ----------
    exponent : float >= 0
        0 for equal sizes.
    min_samples : int >= 0
        Smaller sizes are raised to it. With 0 a client may be left without samples.
    """

    exponent: Annotated[Exponent, Field(ge=0, le=20)] = 1.0
    min_samples: Annotated[int, Field(ge=0)] = 1

    def assign(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
        require(labels.size, clients, self.min_samples, OR_FEWER)
        rng = streams.generator("split")
        ranks = rng.permutation(clients).astype(np.float64) + 1.0
        ties = streams.generator("split-ties")
        sizes = shared(labels.size, np.power(ranks, -self.exponent), self.min_samples, ties)
        return slices(rng.permutation(labels.size), sizes)
