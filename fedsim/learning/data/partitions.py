"""How the training samples are dealt out to the clients.

All luck comes from the stream ``"split"``. A split of your own is a `fedsim.Component` with a method
``assign(labels, classes, clients, streams)``.
"""

from typing import Annotated, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsim.errors import ScenarioError
from fedsim.registry import Component, Registry
from fedsim.streams import Streams

Indices = NDArray[np.int64]


class Partition(Protocol):
    """What a scenario asks of a split."""

    def assign(self, labels: Indices, classes: int, clients: int, streams: Streams) -> list[Indices]:
        """Return the samples of each client.

        Parameters
        ----------
        labels : int64 array of shape (N,)
            Label of every training sample, in 0..classes-1.
        classes, clients : int >= 1

        Returns
        -------
        one array of distinct sample numbers per client; no sample belongs to two clients

        Raises
        ------
        ScenarioError
            If a client would be left without samples.
        """
        ...


class EqualPartition(Component):
    """Independent and identically distributed: a random permutation in equal slices of floor(N/K) samples."""

    def assign(self, labels: Indices, classes: int, clients: int, streams: Streams) -> list[Indices]:
        """Return the samples of each client; N mod K samples are left over."""
        _require(labels.size, clients, 1)
        size = labels.size // clients
        order = streams.generator("split").permutation(labels.size)
        return list(order[: clients * size].reshape(clients, size))


class DirichletPartition(Component):
    """Label skew: every client has its own mixture of classes, the odder the smaller alpha.

    Attributes
    ----------
    alpha : float > 0
        Concentration of the symmetric Dirichlet distribution; large values approach equal mixtures.
    per : ``"class"`` or ``"client"``
        ``"class"``: for each class, shares over the K clients are drawn from Dir_K(alpha) and its samples dealt
        out accordingly; all samples are used and sizes differ (Yurochkin et al., "Bayesian nonparametric
        federated learning of neural networks", ICML 2019). ``"client"``: for each client a mixture
        of classes is drawn from Dir(alpha q), q being C times the classes' shares of the data, and it gets
        floor(N/K) samples of that mixture (Hsu, Qi and Brown, "Measuring the effects of non-identical data
        distribution for federated visual classification", 2019; there with alpha q for q summing to
        one, so their alpha is C times ours). When a class runs out, its part goes to the others in proportion.
    min_samples : int >= 1
        Clients below it are topped up with random samples of whichever client has most at that moment.
    """

    alpha: Annotated[float, Field(gt=0)]
    per: Literal["class", "client"] = "class"
    min_samples: Annotated[int, Field(ge=1)] = 1

    def assign(self, labels: Indices, classes: int, clients: int, streams: Streams) -> list[Indices]:
        """Return the samples of each client."""
        _require(labels.size, clients, self.min_samples)
        rng = streams.generator("split")
        deal = self._deal_classes if self.per == "class" else self._deal_clients
        return _topped_up(deal(_pools(labels, classes, rng), clients, rng), self.min_samples, rng)

    def _deal_classes(self, pools: list[Indices], clients: int, rng: np.random.Generator) -> list[Indices]:
        hands: list[list[Indices]] = [[] for _ in range(clients)]
        for pool in pools:
            shares = rng.dirichlet(np.full(clients, self.alpha))
            cuts = np.floor(np.cumsum(shares)[:-1] * pool.size).astype(np.int64)
            for hand, piece in zip(hands, np.split(pool, cuts), strict=True):
                hand.append(piece)
        return [np.concatenate(hand) for hand in hands]

    def _deal_clients(self, pools: list[Indices], clients: int, rng: np.random.Generator) -> list[Indices]:
        left = np.array([pool.size for pool in pools])
        concentration = self.alpha * len(pools) * left / left.sum()
        present = concentration > 0
        size = int(left.sum()) // clients
        hands: list[Indices] = []
        for _ in range(clients):
            mixture = np.zeros(len(pools))
            mixture[present] = rng.dirichlet(concentration[present])
            counts = _drawn_counts(mixture, size, left, rng)
            hands.append(_take(pools, left, counts))
        return hands


class QuantitySkewPartition(Component):
    """Quantity skew with a dominant label, as in the PAUSE code: sizes differ much, mixtures of labels little.

    Client k's share p_k of the data comes from a symmetric Dirichlet distribution over the clients; its size is
    ``max(floor(min_fraction N / K), floor(p_k N))``, all sizes then scaled so that they sum to about N. Labels,
    repeated ceil(K / classes) times and shuffled, give every client a dominant one, from which it takes
    ``dominant_share`` of its samples; the others come in equal parts from the other labels, without
    replacement. Where a label has run out, clients late in the order get less than planned.

    Attributes
    ----------
    concentration : float > 0
        3 and 2 in the PAUSE paper's CIFAR-10 figures; larger values make sizes more alike.
    dominant_share : float in [0, 1]
    min_fraction : float in [0, 1]
        Smallest size as a share of N/K, before scaling.
    """

    concentration: Annotated[float, Field(gt=0)]
    dominant_share: Annotated[float, Field(ge=0, le=1)] = 0.25
    min_fraction: Annotated[float, Field(ge=0, le=1)] = 1 / 3

    def assign(self, labels: Indices, classes: int, clients: int, streams: Streams) -> list[Indices]:
        """Return the samples of each client."""
        _require(labels.size, clients, 1)
        rng = streams.generator("split")
        sizes = self.sizes(labels.size, clients, rng)
        dominant = rng.permutation(np.tile(np.arange(classes), -(-clients // classes)))[:clients]
        pools = _pools(labels, classes, rng)
        left = np.array([pool.size for pool in pools])
        hands = []
        for client, (size, label) in enumerate(zip(sizes.tolist(), dominant.tolist(), strict=True)):
            counts = np.minimum(self._plan(size, label, classes), left)
            if counts.sum() == 0:
                raise ScenarioError(
                    f"learning.split: client {client} of {clients} would get none of the {labels.size} samples; "
                    f"raise min_fraction or concentration, or lower crowd.clients"
                )
            hands.append(_take(pools, left, counts))
        return hands

    def sizes(self, samples: int, clients: int, rng: np.random.Generator) -> Indices:
        """Return the planned size of each client, shape (K,); they sum to the samples less rounding."""
        shares = rng.dirichlet(np.full(clients, self.concentration))
        smallest = np.floor(self.min_fraction * samples / clients)
        raw = np.maximum(smallest, np.floor(shares * samples))
        return np.asarray(np.floor(raw * samples / raw.sum()), dtype=np.int64)

    def _plan(self, size: int, label: int, classes: int) -> Indices:
        if classes == 1:
            return np.array([size])
        of_dominant = round(self.dominant_share * size)
        each, over = divmod(size - of_dominant, classes - 1)
        counts = np.full(classes, each)
        counts[(label + 1 + np.arange(over)) % classes] += 1
        counts[label] = of_dominant
        return counts


def _require(samples: int, clients: int, min_samples: int) -> None:
    if samples < clients * min_samples:
        raise ScenarioError(
            f"learning.split: {samples} training samples cannot give each of {clients} clients at least "
            f"{min_samples}; allowed: crowd.clients of at most {samples // min_samples}"
        )


def _pools(labels: Indices, classes: int, rng: np.random.Generator) -> list[Indices]:
    """Return the samples of every class in random order."""
    return [rng.permutation(np.flatnonzero(labels == label)) for label in range(classes)]


def _take(pools: list[Indices], left: Indices, counts: Indices) -> Indices:
    """Return the next samples of every pool, counting down what is left of each."""
    starts = [pool.size - int(rest) for pool, rest in zip(pools, left, strict=True)]
    left -= counts
    pieces = [pool[at : at + n] for pool, at, n in zip(pools, starts, counts.tolist(), strict=True)]
    return np.concatenate(pieces)


def _drawn_counts(mixture: NDArray[np.float64], size: int, left: Indices, rng: np.random.Generator) -> Indices:
    """Return how many of each class to take; what an empty class cannot give, the others give."""
    counts = np.zeros(left.size, dtype=np.int64)
    while (short := size - int(counts.sum())) > 0:
        open_classes = counts < left
        shares = np.where(open_classes, mixture, 0.0)
        # A mixture may have all its weight on classes that are empty by now.
        shares = shares if shares.sum() > 0 else np.where(open_classes, left - counts, 0).astype(np.float64)
        counts = np.minimum(counts + rng.multinomial(short, shares / shares.sum()), left)
    return counts


def _topped_up(hands: list[Indices], least: int, rng: np.random.Generator) -> list[Indices]:
    """Return the hands with everyone at ``least`` samples, taken from the largest hands."""
    sizes = np.array([hand.size for hand in hands])
    for client in np.flatnonzero(sizes < least).tolist():
        while sizes[client] < least:
            donor = int(np.argmax(sizes))
            moved = int(min(least - sizes[client], max(1, (sizes[donor] - least) // 2)))
            given = rng.permutation(hands[donor])
            hands[donor], hands[client] = given[moved:], np.concatenate([hands[client], given[:moved]])
            sizes[donor], sizes[client] = hands[donor].size, hands[client].size
    return hands


PARTITIONS: Final = Registry(
    "split",
    "fedsim.splits",
    ("assign",),
    {
        "equal": "fedsim.learning.data.partitions:EqualPartition",
        "dirichlet": "fedsim.learning.data.partitions:DirichletPartition",
        "quantity-skew": "fedsim.learning.data.partitions:QuantitySkewPartition",
    },
)
