"""Samples that clients draw among their own for one participation, as a function of a named stream."""

from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from fedsim.arrays import BoolArray, IntArray
from fedsim.streams import Streams

_NEXT_ROUND: Final = 2**32
"""More than the samples of a client, so that each sample of each participation has a counter of its own."""


class Drawn(NamedTuple):
    """How many samples the clients of a cohort have drawn, in which participation."""

    probability: float
    number: int
    taken: IntArray
    divisor: float | None = None

    def part(self, kept: IntArray) -> "Drawn":
        return self._replace(taken=self.taken[kept])

    @property
    def named(self) -> str:
        return f" drawn {self.probability!r} {self.number} {self.divisor!r}"

    def each(self) -> "list[Draw | None]":
        divisor = self.divisor
        return [
            Draw(self.probability, self.number, taken, 1.0 if divisor is None else taken / divisor)
            for taken in self.taken.tolist()
        ]


class Draw(NamedTuple):
    """The draw of one client for one training; see `Drawn`."""

    probability: float
    number: int
    taken: int
    scale: float


class SampleDraws:
    """Draws each sample of each client with a probability.

    Sample i of client k is drawn in participation t if the number of the stream ``"drawn-samples"`` for (k, t 2^32 + i)
    is below the probability. So a draw depends on nothing else, and a sample drawn with a probability is drawn with any
    higher one.
    """

    def __init__(self, streams: Streams, samples: IntArray) -> None:
        self._streams, self._samples = streams, samples

    def counts(self, client: IntArray, probability: float, number: int) -> IntArray:
        sizes = self._samples[client]
        ends = np.concatenate(([0], np.cumsum(self._drawn(client, sizes, probability, number))))
        last = np.cumsum(sizes)
        return np.asarray(ends[last] - ends[last - sizes], dtype=np.int64)

    def places(self, client: IntArray, probability: float, number: int) -> list[IntArray]:
        """Return the indices of the drawn samples among each client's own, ascending, n arrays."""
        sizes = self._samples[client]
        drawn, last = np.flatnonzero(self._drawn(client, sizes, probability, number)), np.cumsum(sizes)
        ends = np.searchsorted(drawn, last)
        places = drawn - np.repeat(last - sizes, np.diff(ends, prepend=0))
        return [places[start:stop] for start, stop in pairwise([0, *ends.tolist()])]

    def _drawn(self, client: IntArray, sizes: IntArray, probability: float, number: int) -> BoolArray:
        if probability >= 1.0:
            return np.ones(int(sizes.sum()), dtype=bool)
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        place = np.arange(starts.size) - starts + number * _NEXT_ROUND
        return self._streams.uniform("drawn-samples", np.repeat(client, sizes), place) < probability
