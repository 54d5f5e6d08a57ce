"""Shards of samples sorted by label."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fedsim.arrays import IntArray
from fedsim.capabilities import LABELS
from fedsim.learning.data.partitions.contracts import Split
from fedsim.streams import Streams


class ShardsPartition(Split):
    """Pathological label skew: samples sorted by label are cut into shards, and each client gets a few at random.

    McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017, section
    3: MNIST in 200 shards of 300, two for each of 100 clients. Within a label the order is random. All samples are
    used: where they do not divide evenly, the first shards have one more. With more shards than samples, shards are
    empty, and clients may be.

    Attributes
    ----------
    shards : int >= 1
        Shards of each client.
    """

    requires: ClassVar[frozenset[str]] = frozenset({LABELS})

    shards: Annotated[int, Field(ge=1)] = 2

    def assign(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
        rng = streams.generator("split")
        order = rng.permutation(labels.size)
        order = order[np.argsort(labels[order], kind="stable")]
        pieces = np.array_split(order, clients * self.shards)
        dealt = rng.permutation(len(pieces)).reshape(clients, self.shards)
        return [np.concatenate([pieces[shard] for shard in mine]) for mine in dealt.tolist()]
