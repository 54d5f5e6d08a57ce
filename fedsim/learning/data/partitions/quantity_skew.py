"""Sizes by a Dirichlet distribution with a floor, and a dominant label for each client."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fedsim.arrays import IntArray
from fedsim.capabilities import LABELS
from fedsim.learning.data.partitions.contracts import Split
from fedsim.learning.data.partitions.shares import pools_of, take
from fedsim.streams import Streams


class QuantitySkewPartition(Split):
    """Quantity skew with a dominant label, as in the PAUSE code: sizes differ more than mixtures of labels.

    Client k's share p_k of the data comes from a symmetric Dirichlet distribution over the clients; its size is
    ``max(floor(min_fraction N / K), floor(p_k N))``, all sizes then scaled so that they sum to about N. Labels,
    repeated ceil(K / classes) times and shuffled, give every client a dominant one, from which it takes
    ``dominant_share`` of its samples; the others come in equal parts from the other labels, without
    replacement. Where a label has run out, clients late in the order get less than planned. A client for which all
    planned labels have run out gets one sample of the label of which most are left; in the PAUSE code it has none. A
    size may be 0, where shares are small or samples few.

    Attributes
    ----------
    concentration : float > 0
        3 and 2 in the PAUSE paper's CIFAR-10 figures; larger values make sizes more alike.
    dominant_share : float in [0, 1]
    min_fraction : float in [0, 1]
        Smallest size as a share of N/K, before scaling.

    Examples
    --------
    >>> labels = np.repeat(np.arange(5), 200)
    >>> parts = QuantitySkewPartition(concentration=2.0).assign(labels, 5, 4, Streams(1))
    >>> [part.size for part in parts]
    [136, 312, 470, 56]
    >>> [round(float(np.bincount(labels[part]).max() / part.size), 2) for part in parts]  # of the dominant label
    [0.25, 0.25, 0.25, 0.36]
    """

    requires: ClassVar[frozenset[str]] = frozenset({LABELS})

    concentration: Annotated[float, Field(gt=0)]
    dominant_share: Annotated[float, Field(ge=0, le=1)] = 0.25
    min_fraction: Annotated[float, Field(ge=0, le=1)] = 1 / 3

    def assign(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
        rng = streams.generator("split")
        sizes = self.sizes(labels.size, clients, rng)
        dominant = rng.permutation(np.tile(np.arange(classes), -(-clients // classes)))[:clients]
        pools = pools_of(labels, classes, rng)
        left = np.array([pool.size for pool in pools])
        parts = []
        for size, label in zip(sizes.tolist(), dominant.tolist(), strict=True):
            counts = np.minimum(self._plan(size, label, classes), left)
            if size and not counts.any():
                counts[left.argmax()] = 1
            parts.append(take(pools, left, counts))
        return parts

    def sizes(self, samples: int, clients: int, rng: np.random.Generator) -> IntArray:
        """Return the planned size of each client, shape (K,); they sum to the samples less rounding."""
        shares = rng.dirichlet(np.full(clients, self.concentration))
        smallest = np.floor(self.min_fraction * samples / clients)
        raw = np.maximum(smallest, np.floor(shares * samples))
        return np.asarray(np.floor(raw * samples / max(1.0, raw.sum())), dtype=np.int64)

    def _plan(self, size: int, label: int, classes: int) -> IntArray:
        if classes == 1:
            return np.array([size])
        of_dominant = round(self.dominant_share * size)
        each, over = divmod(size - of_dominant, classes - 1)
        counts = np.full(classes, each)
        counts[(label + 1 + np.arange(over)) % classes] += 1
        counts[label] = of_dominant
        return counts
