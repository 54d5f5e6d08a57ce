"""Quantisation: each number of an update is rounded at random to one of few levels."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from fedsim.arrays import Vector, Whole
from fedsim.learning.compression.compressors import Compressor
from fedsim.units import BITS_PER_FLOAT32


class QSGD(Compressor):
    """Round each number at random to a multiple of the bucket's norm over ``levels``, unbiased.

    A number v of a bucket with norm N becomes ``sign(v) N l / s``, where s is ``levels`` and l one of the two whole
    numbers around ``s |v| / N``, drawn so that the mean is v. See Alistarh, Grubic, Li, Tomioka and Vojnovic, "QSGD:
    Communication-efficient SGD via gradient quantization and encoding", NIPS 2017, section 3.1. With the Euclidean
    norm of a bucket of n numbers the mean squared error is at most ``min(n / s^2, sqrt(n) / s)`` times the squared norm
    of the bucket (Lemma 3.1).

    The message has a fixed length: 32 bits for the norm of each bucket, and for each number one bit for the sign and
    ``ceil(log2(s + 1))`` bits for the level. The Elias code of the paper, whose length depends on the numbers, is not
    used: the time of a transfer would then depend on the training. 127 levels are 8 bits for each number.

    Attributes
    ----------
    levels : int in [1, 2^24)
    bucket : int >= 1, optional
        Most numbers that share a norm; a tensor of more is cut into buckets of this size, the last one smaller. None
        for one bucket for each tensor.
    norm : ``"l2"``, the paper's law, or ``"max"``, the largest absolute value, as in the paper's experiments

    Examples
    --------
    >>> QSGD(levels=127).bits([100, 10])  # 1 + 7 bits for each of 110 numbers, and 32 for each of two norms
    944.0
    >>> update = np.array([3.0, 0.5, -4.0], dtype=np.float32)
    >>> QSGD(levels=4, norm="max").compress(update, [3], np.random.default_rng(0)).tolist()  # multiples of 4 / 4
    [3.0, 0.0, -4.0]
    """

    levels: Annotated[int, Field(ge=1, lt=2**24)] = 127
    bucket: Whole | None = None
    norm: Literal["l2", "max"] = "l2"

    def bits(self, tensors: Sequence[int]) -> float:
        each = 1 + math.ceil(math.log2(self.levels + 1))
        buckets = len(self._starts(tensors)) - 1
        return float(each * sum(tensors) + BITS_PER_FLOAT32 * buckets)

    def compress(self, update: Vector, tensors: Sequence[int], rng: np.random.Generator) -> Vector:
        """Return the rounded update, shape (p,); a bucket with a number that is not finite becomes NaN."""
        draws = rng.random(update.size)
        found = np.empty_like(update)
        with np.errstate(over="ignore", invalid="ignore"):
            for first, end in pairwise(self._starts(tensors)):
                found[first:end] = self._rounded(update[first:end].astype(np.float64), draws[first:end])
        return found

    def _rounded(self, values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], draws: object) -> Vector:
        size = np.abs(values)
        exact = np.sqrt(np.square(values).sum()) if self.norm == "l2" else size.max()
        norm = np.float32(exact)
        if norm == 0:
            return np.zeros(values.size, dtype=np.float32)
        level = np.floor(np.minimum(size * (self.levels / float(norm)), self.levels) + draws)
        return np.asarray(np.copysign(level, values) * (float(norm) / self.levels), dtype=np.float32)

    def _starts(self, tensors: Sequence[int]) -> list[int]:
        """Return where each bucket begins, and the end of the last one."""
        starts: list[int] = []
        first = 0
        for size in tensors:
            starts += range(first, first + size, self.bucket or max(1, size))
            first += size
        return [*starts, first]
