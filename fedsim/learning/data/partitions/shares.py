"""Arithmetic of partitions: pools of samples, and whole numbers in given proportions."""

from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import ScenarioError


def require(samples: int, clients: int, min_samples: int, or_else: str = "") -> None:
    if samples < clients * min_samples:
        raise ScenarioError(
            f"learning.split: {samples} training samples cannot give each of {clients} clients at least "
            f"{min_samples}; allowed: crowd.clients of at most {samples // min_samples}{or_else and f', {or_else}'}"
        )


OR_FEWER: Final = "or a lower learning.split.min_samples (0 with learning.allow_empty)"
"""What a refusal allows where a split has a smallest number of samples."""


def pools_of(labels: IntArray, classes: int, rng: np.random.Generator) -> list[IntArray]:
    return [rng.permutation(np.flatnonzero(labels == label)) for label in range(classes)]


def take(pools: list[IntArray], left: IntArray, counts: IntArray) -> IntArray:
    """Return the next samples of every pool, and lower ``left`` by their numbers."""
    starts = [pool.size - int(rest) for pool, rest in zip(pools, left, strict=True)]
    left -= counts
    pieces = [pool[at : at + n] for pool, at, n in zip(pools, starts, counts.tolist(), strict=True)]
    return np.concatenate(pieces)


def drawn_counts(mixture: FloatArray, size: int, left: IntArray, rng: np.random.Generator) -> IntArray:
    """Return how many samples of each class to take; other classes replace an empty one."""
    counts = np.zeros(left.size, dtype=np.int64)
    while (short := size - int(counts.sum())) > 0:
        open_classes = counts < left
        shares = np.where(open_classes, mixture, 0.0)
        # A mixture may have all its weight on classes that are empty by now.
        shares = shares if shares.sum() > 0 else np.where(open_classes, left - counts, 0).astype(np.float64)
        counts = np.minimum(counts + rng.multinomial(short, shares / shares.sum()), left)
    return counts


def topped_up(parts: list[IntArray], least: int, rng: np.random.Generator) -> list[IntArray]:
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


def shared(total: int, weights: FloatArray, least: int = 0, ties: np.random.Generator | None = None) -> IntArray:
    """Return whole numbers in the proportions of weights, of an exact sum, by largest remainders."""
    counts = np.full(weights.size, least, dtype=np.int64)
    scaled = weights / weights.max()
    raised = np.zeros(weights.size, dtype=bool)
    while True:
        free = np.flatnonzero(~raised)
        if not free.size:
            return counts
        rest = total - least * int(raised.sum())
        parts = scaled[free]
        # Weights may be so small that their sum is 0.
        wished = rest * (parts / parts.sum() if parts.sum() > 0 else np.full(free.size, 1 / free.size))
        low = wished < least
        if not low.any():
            break
        raised[free[low]] = True
    floor = np.floor(wished)
    drawn = np.zeros(free.size) if ties is None else ties.random(free.size)
    order = np.lexsort((drawn, floor - wished))
    counts[free] = floor.astype(np.int64)
    counts[free[order[: rest - int(floor.sum())]]] += 1
    return counts


def slices(order: IntArray, sizes: IntArray) -> list[IntArray]:
    ends = np.cumsum(sizes)
    return np.split(order[: ends[-1]], ends[:-1])
