"""How the training samples are divided among the clients.

All draws come from the stream ``"split"``. A partition of your own is a `fedsim.Component` with a method
``assign(labels, classes, clients, streams)``.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, Protocol

import numpy as np
from pydantic import Field

from fedsim.answers import AnswerError, Contract, Given, Numbers, in_words
from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import ScenarioError
from fedsim.registry import Component, Registry
from fedsim.streams import Streams


class Partition(Protocol):
    """A division of the training samples among clients, as a scenario names it."""

    def assign(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
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


@dataclass(frozen=True)
class _Parts:
    """One array of distinct sample numbers for each client, none of them in two."""

    def __call__(self, answer: object, given: Given) -> list[IntArray]:
        """Return copies."""
        clients, samples = given["clients"], given["labels"].size
        if not isinstance(answer, list | tuple) or len(answer) != clients:
            raise AnswerError(in_words(answer), f"a list of {clients} arrays of sample numbers")
        number = Numbers(None, least=0, most=samples - 1, dtype=np.int64)
        parts: list[IntArray] = []
        for client, part in enumerate(answer):
            try:
                parts.append(number(part, given))
            except AnswerError as error:
                raise AnswerError(f"{error.found} for client {client}", error.allowed) from None
            if parts[-1].ndim != 1:
                raise AnswerError(f"{in_words(part)} for client {client}", "arrays of one dimension")
        counted = np.bincount(np.concatenate(parts), minlength=samples)
        if counted.max(initial=0) > 1:
            raise AnswerError(f"sample {int(counted.argmax())} twice", "each sample at most once")
        return parts


PARTITION: Final = Contract("split", Partition, {"assign": _Parts()})


class EqualPartition(Component):
    """Independent and identically distributed: a random permutation in equal slices of floor(N/K) samples."""

    def assign(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
        """Return the samples of each client, arrays of shape (floor(N/K),); N mod K samples are left over."""
        _require(labels.size, clients, 1)
        size = labels.size // clients
        order = streams.generator("split").permutation(labels.size)
        return list(order[: clients * size].reshape(clients, size))


class DirichletPartition(Component):
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
    min_samples : int >= 1
        A client below it gets random samples of the client that has most at that moment.
    """

    alpha: Annotated[float, Field(gt=0)]
    per: Literal["class", "client"] = "class"
    min_samples: Annotated[int, Field(ge=1)] = 1

    def assign(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
        """Return the samples of each client, K arrays of different shapes."""
        _require(labels.size, clients, self.min_samples)
        rng = streams.generator("split")
        divide = self._divide_classes if self.per == "class" else self._divide_clients
        return _topped_up(divide(_pools(labels, classes, rng), clients, rng), self.min_samples, rng)

    def _divide_classes(self, pools: list[IntArray], clients: int, rng: np.random.Generator) -> list[IntArray]:
        parts: list[list[IntArray]] = [[] for _ in range(clients)]
        for pool in pools:
            shares = rng.dirichlet(np.full(clients, self.alpha))
            cuts = np.floor(np.cumsum(shares)[:-1] * pool.size).astype(np.int64)
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
            counts = _drawn_counts(mixture, size, left, rng)
            parts.append(_take(pools, left, counts))
        return parts


class QuantitySkewPartition(Component):
    """Quantity skew with a dominant label, as in the PAUSE code: sizes differ more than mixtures of labels.

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

    def assign(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
        """Return the samples of each client, K arrays of different shapes."""
        _require(labels.size, clients, 1)
        rng = streams.generator("split")
        sizes = self.sizes(labels.size, clients, rng)
        dominant = rng.permutation(np.tile(np.arange(classes), -(-clients // classes)))[:clients]
        pools = _pools(labels, classes, rng)
        left = np.array([pool.size for pool in pools])
        parts = []
        for client, (size, label) in enumerate(zip(sizes.tolist(), dominant.tolist(), strict=True)):
            counts = np.minimum(self._plan(size, label, classes), left)
            if counts.sum() == 0:
                raise ScenarioError(
                    f"learning.split: client {client} of {clients} would get none of the {labels.size} samples; "
                    f"raise min_fraction or concentration, or lower crowd.clients"
                )
            parts.append(_take(pools, left, counts))
        return parts

    def sizes(self, samples: int, clients: int, rng: np.random.Generator) -> IntArray:
        """Return the planned size of each client, shape (K,); they sum to the samples less rounding."""
        shares = rng.dirichlet(np.full(clients, self.concentration))
        smallest = np.floor(self.min_fraction * samples / clients)
        raw = np.maximum(smallest, np.floor(shares * samples))
        return np.asarray(np.floor(raw * samples / raw.sum()), dtype=np.int64)

    def _plan(self, size: int, label: int, classes: int) -> IntArray:
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


def _pools(labels: IntArray, classes: int, rng: np.random.Generator) -> list[IntArray]:
    """Return the samples of every class in random order."""
    return [rng.permutation(np.flatnonzero(labels == label)) for label in range(classes)]


def _take(pools: list[IntArray], left: IntArray, counts: IntArray) -> IntArray:
    """Return the next samples of every pool, and lower ``left`` by their numbers."""
    starts = [pool.size - int(rest) for pool, rest in zip(pools, left, strict=True)]
    left -= counts
    pieces = [pool[at : at + n] for pool, at, n in zip(pools, starts, counts.tolist(), strict=True)]
    return np.concatenate(pieces)


def _drawn_counts(mixture: FloatArray, size: int, left: IntArray, rng: np.random.Generator) -> IntArray:
    """Return how many samples of each class to take; the other classes replace an empty one, shape (classes,)."""
    counts = np.zeros(left.size, dtype=np.int64)
    while (short := size - int(counts.sum())) > 0:
        open_classes = counts < left
        shares = np.where(open_classes, mixture, 0.0)
        # A mixture may have all its weight on classes that are empty by now.
        shares = shares if shares.sum() > 0 else np.where(open_classes, left - counts, 0).astype(np.float64)
        counts = np.minimum(counts + rng.multinomial(short, shares / shares.sum()), left)
    return counts


def _topped_up(parts: list[IntArray], least: int, rng: np.random.Generator) -> list[IntArray]:
    """Return parts of at least ``least`` samples each; missing samples come from the largest parts."""
    sizes = np.array([part.size for part in parts])
    for client in np.flatnonzero(sizes < least).tolist():
        while sizes[client] < least:
            donor = int(np.argmax(sizes))
            moved = int(min(least - sizes[client], max(1, (sizes[donor] - least) // 2)))
            given = rng.permutation(parts[donor])
            parts[donor], parts[client] = given[moved:], np.concatenate([parts[client], given[:moved]])
            sizes[donor], sizes[client] = parts[donor].size, parts[client].size
    return parts


PARTITIONS: Final = Registry(
    "split",
    "fedsim.splits",
    ("assign",),
    {
        "equal": "fedsim.learning.data.partitions:EqualPartition",
        "dirichlet": "fedsim.learning.data.partitions:DirichletPartition",
        "sizes": "fedsim.learning.data.given_sizes:SizesPartition",
        "quantity-skew": "fedsim.learning.data.partitions:QuantitySkewPartition",
    },
)
