"""Sparsification: few numbers of an update are sent, with their indices.

Without scaling the message is never farther from the update than zero is, so that error feedback stays bounded (Stich,
Cordonnier and Jaggi, "Sparsified SGD with memory", NeurIPS 2018).
"""

from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from fedsim.arrays import IntArray, Vector
from fedsim.learning.compression.coding import Coding, bits_of_places
from fedsim.learning.compression.compressors import Compressor
from fedsim.units import BITS_PER_FLOAT32

_SEED_BITS = 64


class _Sparse(Compressor):
    """What both rules have in common: how many numbers are sent, with their places, and what becomes of the others."""

    share: Annotated[float, Field(gt=0, le=1)] = 0.01
    error_feedback: bool = True
    coding: Coding = "fixed"

    @property
    def remembers(self) -> bool:
        return self.error_feedback

    @property
    def same_numbers(self) -> Compressor:
        return self.model_copy(update={"coding": "fixed"})

    def bits(self, tensors: Sequence[int]) -> float:
        size = sum(tensors)
        count = self._kept(size)
        places = bits_of_places(count, size) if self.coding == "entropy" else count * (size - 1).bit_length()
        return float(count * BITS_PER_FLOAT32 + places)

    def _kept(self, size: int) -> int:
        return max(1, round(self.share * size))


class TopK(_Sparse):
    """Send the numbers of the largest absolute values, of all tensors together.

    Of p numbers ``k = max(1, round(share p))`` are sent, each with 32 bits and the ``ceil(log2 p)`` bits of its place,
    or with ``coding = "entropy"`` all places together in the logarithm of the number of subsets.
    Of equal values the first ones are sent. What is left out has at most ``1 - k / p`` of the squared norm.

    Attributes
    ----------
    share : float in (0, 1]
    error_feedback : bool
        Whether clients keep what they did not send, and add it to their next update.
    coding : ``"fixed"`` or ``"entropy"``

    Examples
    --------
    >>> TopK(share=0.02).bits([100, 10])  # two numbers, each with 32 bits and ceil(log2 110) of its place
    78.0
    >>> update = np.array([0.5, -3.0, 1.0, 2.0], dtype=np.float32)
    >>> TopK(share=0.5).compress(update, [4], np.random.default_rng(0)).tolist()
    [0.0, -3.0, 0.0, 2.0]
    """

    def compress(self, update: Vector, tensors: Sequence[int], rng: np.random.Generator) -> Vector:
        count = self._kept(update.size)
        size = np.abs(update)
        size[np.isnan(size)] = np.inf
        # By the value of the smallest one, as the order of a partition depends on the processor.
        least = np.partition(size, update.size - count)[update.size - count]
        sent = size > least
        sent[np.flatnonzero(size == least)[: count - int(np.count_nonzero(sent))]] = True
        return np.where(sent, update, np.float32(0))


class RandomK(_Sparse):
    """Send numbers at random places, of all tensors together.

    Of p numbers ``k = max(1, round(share p))`` are sent, each with 32 bits and the ``ceil(log2 p)`` bits of its place,
    or with ``coding = "entropy"`` all places together in the logarithm of the number of subsets.

    Attributes
    ----------
    share : float in (0, 1]
    error_feedback : bool
        Whether clients keep what they did not send, and add it to their next update. Otherwise what is sent is
        multiplied by p / k, so that its mean is the update.
    coding : ``"fixed"`` or ``"entropy"``
    shared_seed : bool
        Whether the server draws the same places from a seed: the message has 64 bits for it, and none for places.

    Examples
    --------
    >>> RandomK(share=0.02).bits([100, 10]), RandomK(share=0.02, shared_seed=True).bits([100, 10])
    (78.0, 128.0)
    >>> update, rng = np.array([0.5, -3.0, 1.0, 2.0], dtype=np.float32), np.random.default_rng(0)
    >>> RandomK(share=0.5, error_feedback=False).compress(update, [4], rng).tolist()  # two of them, times 4 / 2
    [0.0, 0.0, 2.0, 4.0]
    """

    shared_seed: bool = False

    @model_validator(mode="after")
    def _has_places(self) -> Self:
        if self.shared_seed and self.coding == "entropy":
            raise ValueError(
                "coding = 'entropy' is not allowed with shared_seed = True, whose message has no places; allowed: "
                "coding = 'fixed'"
            )
        return self

    def bits(self, tensors: Sequence[int]) -> float:
        if self.shared_seed:
            return float(self._kept(sum(tensors)) * BITS_PER_FLOAT32 + _SEED_BITS)
        return super().bits(tensors)

    def compress(self, update: Vector, tensors: Sequence[int], rng: np.random.Generator) -> Vector:
        count = self._kept(update.size)
        places: IntArray = rng.choice(update.size, count, replace=False, shuffle=False)
        scale = 1.0 if self.error_feedback else update.size / count
        found = np.zeros_like(update)
        with np.errstate(over="ignore"):
            found[places] = update[places].astype(np.float64) * scale
        return found
