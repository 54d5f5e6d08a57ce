"""Histograms of labels that clients declare once, before the first round: their noise and what it costs."""

from collections.abc import Iterable
from typing import Annotated, Final, Protocol

import numpy as np
from numpy.random import Generator
from pydantic import Field

from fedsim.answers import Contract, Number, Numbers, same_shape
from fedsim.arrays import FloatArray, IntArray
from fedsim.privacy.mechanisms import laplace_scale
from fedsim.registry import Component, Registry

_TENTH: Final = 0.1


class LabelHistograms(Protocol):
    """A randomiser of histograms.

    Examples
    --------
    >>> [LABEL_HISTOGRAMS.make(kind).cost(20.0) for kind in ("exact", "laplace")]
    [0.0, 2.0]
    >>> LABEL_HISTOGRAMS.make("exact").release(np.array([30, 10, 0]), 0.0, np.random.default_rng(0)).tolist()
    [0.75, 0.25, 0.0]
    """

    def cost(self, budget: float) -> float:
        """Return what a client's histogram costs of its budget, an epsilon below it; 0 for one sent as it is.

        Parameters
        ----------
        budget : epsilon that a client may leak in a run
        """

    def release(self, counts: IntArray, epsilon: float, rng: Generator) -> FloatArray:
        """Return the shares of labels that the client sends, at least 0, shape (labels,).

        Parameters
        ----------
        counts : samples of each label, shape (labels,)
        epsilon : cost of the histogram
        rng : random generator of this release
        """


LABEL_HISTOGRAM: Final = Contract(
    "randomiser of label histograms",
    LabelHistograms,
    {"cost": Number(least=0), "release": Numbers(same_shape("counts"), least=0, most=1)},
)


class _Paid(Component):
    epsilon: Annotated[float, Field(gt=0)] | None = None

    def cost(self, budget: float) -> float:
        return _TENTH * budget if self.epsilon is None else self.epsilon


class LaplaceShares(_Paid):
    """The Laplace mechanism for the shares of labels: epsilon-LDP for the client's whole data, as for its update.

    The shares of two data sets differ by at most 2 in L1 norm, so noise ``Laplace(0, 2 / epsilon)`` on each makes the
    whole histogram epsilon-LDP (Dwork, McSherry, Nissim and Smith, "Calibrating noise to sensitivity in private data
    analysis", TCC 2006). Then shares below 0 count as 0, and the others are scaled to the sum 1, which leaks nothing
    more. The promise holds for real numbers, as that of `fedsim.privacy.mechanisms`.

    Attributes
    ----------
    epsilon : cost of a client's histogram, below the budget; None for a tenth of the budget

    Examples
    --------
    >>> LaplaceShares(epsilon=4.0).cost(20.0), LaplaceShares().cost(20.0)  # by default a tenth of the budget
    (4.0, 2.0)
    >>> shares = LaplaceShares().release(np.array([30, 10, 0]), 20.0, np.random.default_rng(0))
    >>> shares.round(2).tolist()  # 0.75, 0.25 and 0 with noise of the mean size 2 / 20, scaled to the sum 1
    [0.81, 0.19, 0.0]
    """

    def release(self, counts: IntArray, epsilon: float, rng: Generator) -> FloatArray:
        """Return noisy shares of sum 1; equal shares where noise leaves none above 0."""
        return _shares(_shares(counts) + rng.laplace(0.0, laplace_scale(2.0, epsilon), counts.size))


class LaplaceCounts(_Paid):
    """HACCS's own noise (section IV): Laplace noise of scale 1 / epsilon on each count.

    That is epsilon-DP for one sample that is added or removed, and no more: for the client's whole data, the promise of
    the other mechanisms, it is as many times weaker as the client has samples. The account counts epsilon all the same.
    The published code takes 0.1. It sends 1 in place of a noisy count below 0, here 0.

    Attributes
    ----------
    epsilon : cost of a client's histogram, below the budget; None for a tenth of the budget
    """

    def release(self, counts: IntArray, epsilon: float, rng: Generator) -> FloatArray:
        return _shares(counts + rng.laplace(0.0, laplace_scale(1.0, epsilon), counts.size))


class ExactHistograms(Component):
    """Shares as they are, at no cost: they leak without bound, and the run says so."""

    def cost(self, budget: float) -> float:
        return 0.0

    def release(self, counts: IntArray, epsilon: float, rng: Generator) -> FloatArray:
        return _shares(counts)


def released_histograms(
    part: LabelHistograms, counts: IntArray, epsilon: float, generators: Iterable[Generator]
) -> FloatArray:
    """Return the shares of labels that K clients send, shape (K, labels)."""
    sent = np.empty(counts.shape)
    for row, rng in enumerate(generators):
        sent[row] = part.release(counts[row], epsilon, rng)
    return sent


def _shares(numbers: FloatArray | IntArray) -> FloatArray:
    kept = np.maximum(numbers, 0.0)
    largest = float(kept.max(initial=0.0))
    if largest == 0.0:
        return np.full(numbers.size, 1.0 / max(numbers.size, 1))
    kept = kept / largest  # their sum may be more than a float holds
    return np.asarray(kept / kept.sum())


LABEL_HISTOGRAMS: Final = Registry(
    "randomiser of label histograms",
    "fedsim.label_histograms",
    ("cost", "release"),
    {
        "laplace": "fedsim.privacy.label_histograms:LaplaceShares",
        "laplace-counts": "fedsim.privacy.label_histograms:LaplaceCounts",
        "exact": "fedsim.privacy.label_histograms:ExactHistograms",
    },
)
