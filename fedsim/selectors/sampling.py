"""How methods draw from their candidates, as array work: with and without replacement, and by rank."""

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, RoundView


def data_sizes(view: RoundView) -> IntArray:
    """Return n_k of each candidate; 1 for all where none of them has data, as in a run about timing only."""
    return view.samples if view.samples.any() else np.ones(view.client.size, dtype=np.int64)


def data_shares(view: RoundView) -> FloatArray:
    """Return p_k = n_k / sum of n over the candidates; empty where there are none."""
    sizes = data_sizes(view)
    return np.asarray(sizes / max(int(sizes.sum()), 1))


def draw_distinct(weights: FloatArray | IntArray, size: int, rng: np.random.Generator) -> IntArray:
    """Return ``size`` distinct positions, drawn one after the other with probabilities that follow the weights.

    Each position's key is an exponential number over its weight, and the smallest keys win (Efraimidis and Spirakis,
    "Weighted random sampling with a reservoir", Information Processing Letters 97(5), 2006). O(n).

    Parameters
    ----------
    weights : array of shape (n,), at least 0
        Those of weight 0 come last, at random.
    size : int from 0 to n

    Returns
    -------
    array of shape (size,), in no particular order
    """
    keys = np.log(rng.standard_exponential(weights.size))
    heavy = np.flatnonzero(weights > 0)
    keys[heavy] -= np.log(weights[heavy])
    if size > heavy.size:
        idle = np.setdiff1d(np.arange(weights.size), heavy, assume_unique=True)
        return np.concatenate([heavy, idle[_first(keys[idle], size - heavy.size)]])
    return heavy[_first(keys[heavy], size)]


def draw_again(sizes: IntArray, draws: int, rng: np.random.Generator) -> IntArray:
    """Return positions drawn with replacement with probabilities that follow whole numbers, exactly. O(n).

    Parameters
    ----------
    sizes : array of shape (n,), at least 0 and not all 0
    draws : int >= 0

    Returns
    -------
    array of shape (draws,)
    """
    ends = np.cumsum(sizes)
    return np.searchsorted(ends, rng.integers(ends[-1], size=draws), side="right")


def tally(client: IntArray) -> Cohort:
    """Return a cohort of clients that were drawn with replacement: each weighs its share of the draws."""
    drawn, draws = np.unique(client, return_counts=True)
    return Cohort(drawn, draws=draws.astype(np.int64), weights=draws / max(client.size, 1))


def lowest(values: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Return the positions of the ``size`` lowest values, ties broken at random; O(n).

    Parameters
    ----------
    values : array of shape (n,), without NaN
    size : int from 0 to n

    Returns
    -------
    array of shape (size,), in no particular order
    """
    shuffled = rng.permutation(values.size)
    return np.asarray(shuffled[_first(values[shuffled], size)])


def _first(values: FloatArray, size: int) -> IntArray:
    """Return the positions of the lowest values."""
    if size >= values.size:
        return np.arange(values.size)
    return np.argpartition(values, size)[:size]
