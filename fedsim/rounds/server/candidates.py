"""The candidates of a server, as a set that changes a little between two selections."""

from typing import Final

import numpy as np

from fedsim.arrays import BoolArray, IntArray

BLOCK: Final = 1024
_FEW: Final = 64
_SINGLE: Final = 3
"""Up to this number of clients are taken one by one, which is faster than arrays."""


class CandidateSet:
    """Some of the n clients of a server, in the order of their ids.

    Clients are counted in blocks of 1024, so that one client at a place among the candidates costs a sum over the
    counts and a look at one block.
    """

    def __init__(self, member: IntArray, *, whole_crowd: bool) -> None:
        self.count = 0
        self._member, self._whole_crowd = member, whole_crowd
        blocks = -(-member.size // BLOCK)
        self._in: BoolArray = np.zeros(blocks * BLOCK, dtype=np.bool_)
        self._counts: IntArray = np.zeros(blocks, dtype=np.int64)
        self._ends: IntArray | None = None
        self._places: IntArray | None = None

    @property
    def complete(self) -> bool:
        return self.count == self._member.size

    def put(self, position: IntArray, candidate: BoolArray) -> None:
        """Take the present state of clients at distinct positions."""
        if position.size <= _SINGLE:
            for one, is_one in zip(position.tolist(), candidate.tolist(), strict=True):
                self._put_one(one, is_one)
            return
        changed = self._in[position] != candidate
        if not changed.any():
            return
        position, candidate = position[changed], candidate[changed]
        self._in[position] = candidate
        np.add.at(self._counts, position // BLOCK, np.where(candidate, 1, -1))
        self.count += 2 * int(np.count_nonzero(candidate)) - position.size
        self._ends = self._places = None

    def _put_one(self, position: int, candidate: bool) -> None:
        if self._in[position] != candidate:
            self._in[position] = candidate
            change = 1 if candidate else -1
            self._counts[position // BLOCK] += change
            self.count += change
            self._ends = self._places = None

    def everyone(self) -> IntArray:
        return self._member[self._all_places()]

    def pick(self, place: IntArray) -> IntArray:
        """Return the ids at given places among the candidates."""
        place = np.asarray(place)
        if self.complete:
            return self._member[place]
        if self._places is None and place.size <= _FEW:
            return self._member[[self._position(each) for each in place.tolist()]]
        return self._member[self._all_places()[place]]

    def below(self, client: int) -> int:
        position = int(np.searchsorted(self._member, client))
        block = position // BLOCK
        before = int(self._counts[:block].sum())
        return before + int(np.count_nonzero(self._in[block * BLOCK : position]))

    def includes(self, client: IntArray) -> BoolArray:
        """Return which ids are those of candidates."""
        inside = (client >= self._member[0]) & (client <= self._member[-1])
        if not inside.all():
            found = np.zeros(client.size, dtype=np.bool_)
            found[inside] = self.includes(client[inside])
            return found
        if self._whole_crowd:
            return self._in[client]
        position = np.searchsorted(self._member, client)
        return np.asarray((self._member[position] == client) & self._in[position])

    def _position(self, place: int) -> int:
        """Return the position of the client at a place among the candidates."""
        if self._ends is None:
            self._ends = np.cumsum(self._counts)
        block = int(np.searchsorted(self._ends, place, side="right"))
        before = int(self._ends[block - 1]) if block else 0
        start = block * BLOCK
        return start + int(np.flatnonzero(self._in[start : start + BLOCK])[place - before])

    def _all_places(self) -> IntArray:
        """Return the positions of all candidates among the server's clients."""
        if self._places is None:
            self._places = np.flatnonzero(self._in)
        return self._places
