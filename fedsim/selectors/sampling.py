"""Sizes of cohorts, draws of candidates with and without replacement, and arrays with one element per client."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, PublishedSelector, RoundView
from fedsim.selectors.options import Count, check_options

T = TypeVar("T", bound=np.generic)
TIME_COLUMNS: Final = 3
"""First columns of the features: expected seconds of downlink, work and uplink."""


@dataclass(eq=False, repr=False)
class CohortSelector(PublishedSelector):
    """A selector of a number of clients per round.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.

    Attributes
    ----------
    cohort_is_mean : whether a round may have more clients than that, which is their mean number
    """

    cohort_is_mean: ClassVar[bool] = False

    cohort: Count

    def __post_init__(self) -> None:
        check_options(self)

    def cohort_size(self, view: RoundView) -> int:
        return min(self.cohort if view.wanted is None else view.wanted, view.count)


def grown(array: NDArray[T], clients: int, fill: Any = 0) -> NDArray[T]:
    """Return an array over client ids with room for a crowd of this size; it never shrinks."""
    missing = clients - array.size
    return np.pad(array, (0, missing), constant_values=fill) if missing > 0 else array


def whole(number: Any) -> Any:
    """Return the whole part of a number or of each of an array, after rounding: 29 % of 100 is 29, though 28.99... .

    >>> int(0.29 * 100), int(whole(0.29 * 100))
    (28, 29)
    """
    return np.floor(number + 1e-9)


def data_sizes(view: RoundView) -> IntArray:
    """Return n_k of each candidate, shape (n,); 1 for all if no candidate has data, as in a timing-only run."""
    return view.samples if view.samples.any() else np.ones(view.client.size, dtype=np.int64)


def data_shares(view: RoundView) -> FloatArray:
    """Return p_k = n_k / sum of n over the candidates, shape (n,)."""
    sizes = data_sizes(view)
    return np.asarray(sizes / max(int(sizes.sum()), 1))


def never_delivered(view: RoundView) -> BoolArray:
    """Return the mask of candidates that were selected before and have not delivered yet, shape (n,).

    They are not those that were never tried: in a round of methods that prefer the latter they would be asked for ever.
    """
    return np.asarray((view.participations > 0) & np.isnan(view.last_duration_s))


def draw_distinct(weights: FloatArray | IntArray, size: int, rng: np.random.Generator) -> IntArray:
    """Return ``size`` distinct positions, drawn one after the other with probabilities in proportion to the weights."""
    with np.errstate(divide="ignore"):
        return draw_by_logarithms(np.log(weights), size, rng)


def draw_by_logarithms(log_weights: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Return what `draw_distinct` returns for the logarithms of weights, -inf for those of 0.

    Each position's key is an exponential number over its weight; the smallest keys are taken (Efraimidis and Spirakis,
    "Weighted random sampling with a reservoir", Information Processing Letters 97(5), 2006). O(n).
    """
    keys = np.log(rng.standard_exponential(log_weights.size))
    heavy = np.flatnonzero(log_weights > -np.inf)
    keys[heavy] -= log_weights[heavy]
    if size > heavy.size:
        zero = np.setdiff1d(np.arange(keys.size), heavy, assume_unique=True)
        return np.concatenate([heavy, zero[_first(keys[zero], size - heavy.size)]])
    return heavy[_first(keys[heavy], size)]


def draw_again(sizes: IntArray, draws: int, rng: np.random.Generator) -> IntArray:
    """Return positions drawn with replacement, with probabilities exactly in proportion to whole numbers. O(n)."""
    ends = np.cumsum(sizes)
    return np.searchsorted(ends, rng.integers(ends[-1], size=draws), side="right")


def tally(client: IntArray) -> Cohort:
    """Return the cohort of draws with replacement: the weight of a client is its share of the draws."""
    drawn, draws = np.unique(client, return_counts=True)
    return Cohort(drawn, draws=draws.astype(np.int64), weights=draws / max(client.size, 1))


def lowest(values: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Return the positions of the ``size`` lowest values, ties in random order. O(n)."""
    shuffled = rng.permutation(values.size)
    return np.asarray(shuffled[_first(values[shuffled], size)])


def _first(values: FloatArray, size: int) -> IntArray:
    if size >= values.size:
        return np.arange(values.size)
    return np.argpartition(values, size)[:size]
