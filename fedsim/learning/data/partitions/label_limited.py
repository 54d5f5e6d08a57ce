"""Few labels for each client: shards of samples sorted by label, and labels drawn for each client."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedsim.arrays import FloatArray, IntArray
from fedsim.capabilities import LABELS
from fedsim.learning.data.partitions.contracts import Split
from fedsim.learning.data.partitions.shares import pools_of, shared
from fedsim.streams import Streams
from fedsim.units import Exponent


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


class LabelLimitedPartition(Split):
    """Each client has samples of a few labels only, drawn at random without replacement.

    REFL's label-limited mappings (Abdelmoniem et al., "REFL: Resource-efficient federated learning", EuroSys 2023,
    section 5.1): a client holds a tenth of the labels (four of CIFAR-10's ten), and its samples of each are balanced,
    uniform or by a Zipf law. Here the samples of a label are divided among the clients that hold it, in proportion to a
    weight for each client and label, in whole numbers by largest remainders: each sample is used once. Which of equal
    weights get the samples of a remainder is drawn for the law ``"balanced"``; by the other laws the lower numbers of
    clients get them. Samples of a label that no client holds are left over. A client whose weights are small may be
    left without samples.

    Attributes
    ----------
    share : float in (0, 1]
        Share of the labels that each client holds, at least one label.
    law : ``"balanced"``, ``"uniform"`` or ``"zipf"``
        Weights are 1; uniform between 0 and 1; or 1, 2, 3 ... with probabilities in proportion to ``i^-exponent``.
    exponent : float > 1
        Of the Zipf law.
    """

    requires: ClassVar[frozenset[str]] = frozenset({LABELS})

    share: Annotated[float, Field(gt=0, le=1)] = 0.1
    law: Literal["balanced", "uniform", "zipf"] = "balanced"
    exponent: Annotated[Exponent, Field(gt=1, le=20)] = 1.95

    def assign(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
        rng = streams.generator("split")
        ties = streams.generator("split-ties") if self.law == "balanced" else None
        held = np.zeros((clients, classes), dtype=bool)
        each = max(1, round(self.share * classes))
        for client in range(clients):
            held[client, rng.permutation(classes)[:each]] = True
        weights = self._weights(clients, classes, rng)
        parts: list[list[IntArray]] = [[] for _ in range(clients)]
        for label, pool in enumerate(pools_of(labels, classes, rng)):
            holders = np.flatnonzero(held[:, label])
            if holders.size:
                sizes = shared(pool.size, weights[holders, label], ties=ties)
                pieces = np.split(pool, np.cumsum(sizes)[:-1])
                for client, piece in zip(holders.tolist(), pieces, strict=True):
                    parts[client].append(piece)
        return [np.concatenate(part) for part in parts]

    def _weights(self, clients: int, classes: int, rng: np.random.Generator) -> FloatArray:
        shape = (clients, classes)
        if self.law == "zipf":
            return rng.zipf(self.exponent, shape).astype(np.float64)
        # From (0, 1], so that no label has weights of 0 alone.
        return np.ones(shape) if self.law == "balanced" else 1.0 - rng.random(shape)
