"""Label skew by Dirichlet distributions."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedsim.arrays import FloatArray, IntArray
from fedsim.capabilities import LABELS
from fedsim.learning.data.partitions.contracts import Split
from fedsim.learning.data.partitions.shares import OR_FEWER, drawn_counts, pools_of, require, take, topped_up
from fedsim.streams import Streams


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
