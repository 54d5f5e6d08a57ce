"""Uneven labels: shards, a few labels for each client, Dirichlet mixtures, a dominant label for each client."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedsim.arrays import FloatArray, IntArray
from fedsim.capabilities import LABELS
from fedsim.learning.data.partitions.contracts import Split
from fedsim.learning.data.partitions.shares import OR_FEWER, drawn_counts, pools_of, require, shared, take, topped_up
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


class DirichletPartition(Split):
    """Label skew: every client has its own mixture of classes, the more uneven the smaller alpha.

    Attributes
    ----------
    alpha : float > 0
        Concentration of the symmetric Dirichlet distribution; large values approach equal mixtures.
    per : ``"class"`` or ``"client"``
        ``"class"``: for each class, shares over the K clients are drawn from Dir_K(alpha) and its samples divided
        accordingly; all samples are used and sizes differ (Yurochkin et al., "Bayesian nonparametric
        federated learning of neural networks", ICML 2019). ``"client"``: for each client a mixture
        of classes is drawn from Dir(alpha q), q being C times the classes' shares of the data, and it gets
        floor(N/K) samples of that mixture (Hsu, Qi and Brown, "Measuring the effects of non-identical data
        distribution for federated visual classification", 2019; there with alpha q for q summing to
        one, so their alpha is C times ours). When a class runs out, its part goes to the others in proportion.
    rounding : ``"unbiased"`` or ``"cumulative"``
        How shares of a class become whole numbers, by class. ``"unbiased"``: systematic rounding, with one uniform
        number for each class; a client's number of samples is off its share by less than one, and on average by
        nothing. ``"cumulative"``: cumulative shares are rounded down, as in the code of NIID-Bench (Li et al.,
        "Federated learning on non-IID data silos: An experimental study", ICDE 2022). There the first client's number
        is rounded down and the last client's up, so that the last client has samples of nearly every class.
    min_samples : int >= 0
        A client below it gets random samples of the client that has most at that moment. With 0 a client may be left
        without samples.

    Examples
    --------
    >>> labels = np.repeat(np.arange(5), 200)
    >>> for alpha in (0.1, 100.0):
    ...     parts = DirichletPartition(alpha=alpha).assign(labels, 5, 4, Streams(0))
    ...     print(np.bincount(labels[parts[0]], minlength=5))
    [  0 138   0   0 119]
    [52 47 49 44 51]
    """

    requires: ClassVar[frozenset[str]] = frozenset({LABELS})

    alpha: Annotated[float, Field(gt=0)]
    per: Literal["class", "client"] = "class"
    rounding: Literal["unbiased", "cumulative"] = "unbiased"
    min_samples: Annotated[int, Field(ge=0)] = 1

    def assign(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
        require(labels.size, clients, self.min_samples, OR_FEWER)
        rng = streams.generator("split")
        pools = pools_of(labels, classes, rng)
        if self.per == "client":
            parts = self._divide_clients(pools, clients, rng)
        else:
            unbiased = self.rounding == "unbiased"
            starts = streams.generator("split-rounding").random(classes) if unbiased else np.zeros(classes)
            parts = self._divide_classes(pools, clients, starts, rng)
        return topped_up(parts, self.min_samples, rng)

    def _divide_classes(
        self, pools: list[IntArray], clients: int, starts: FloatArray, rng: np.random.Generator
    ) -> list[IntArray]:
        parts: list[list[IntArray]] = [[] for _ in range(clients)]
        for pool, start in zip(pools, starts.tolist(), strict=True):
            shares = rng.dirichlet(np.full(clients, self.alpha))
            cuts = np.floor(np.cumsum(shares)[:-1] * pool.size + start).astype(np.int64)
            for part, piece in zip(parts, np.split(pool, cuts), strict=True):
                part.append(piece)
        return [np.concatenate(part) for part in parts]

    def _divide_clients(self, pools: list[IntArray], clients: int, rng: np.random.Generator) -> list[IntArray]:
        left = np.array([pool.size for pool in pools])
        concentration = self.alpha * len(pools) * left / left.sum()
        present = concentration > 0
        size = int(left.sum()) // clients
        parts: list[IntArray] = []
        for _ in range(clients):
            mixture = np.zeros(len(pools))
            mixture[present] = rng.dirichlet(concentration[present])
            counts = drawn_counts(mixture, size, left, rng)
            parts.append(take(pools, left, counts))
        return parts


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
