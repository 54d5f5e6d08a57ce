"""Links whose capacity changes from one fading block to the next, as arrays of blocks and links."""

from typing import Final, Protocol

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray

_MORE_ROWS: Final = 16
_NONE: Final = -1
_MOST_DRAWN: Final = 2**14
"""Most ratios that are drawn for links that join, unless they are wanted."""


class LinkFading(Protocol):
    """The fading of some links of a network."""

    @property
    def coherence_s(self) -> float: ...

    @property
    def most_blocks(self) -> int:
        """Blocks in a row for which a link in use fades; later ones have the mean."""
        ...

    @property
    def last_block(self) -> int:
        """The first block that has the mean for all links."""
        ...

    def fades(self, link: IntArray) -> BoolArray: ...

    def ratios(self, link: IntArray, block: IntArray) -> FloatArray:
        """Return capacities over their means, >= 0, shape (b, n)."""
        ...


class FadedLinks:
    """The capacities of the links in use in the blocks ahead, over their means; drawn once for each link and block."""

    def __init__(self, fading: LinkFading, links: int) -> None:
        self.fading, self._fades = fading, fading.fades(np.arange(links))
        # Of each link in use: its first block, and its row in the ratios from `_base` on; rows are not used again.
        self._first, self._row = np.full((2, links), _NONE)
        self._ratios = np.zeros((0, 0))
        self._base = self._rows = 0

    def remove(self, link: int) -> None:
        self._first[link] = self._row[link] = _NONE

    def changed(self, link: int) -> None:
        self._row[link] = _NONE

    def begin(self, block: int, links: IntArray) -> int:
        """Let the links in use start to fade in a block; return for how many blocks any of them still does."""
        faded = links[self._fades[links]]
        if not faded.size:
            return 0
        first = self._first[faded]
        self._first[faded] = first = np.where(first == _NONE, block, first)
        return max(0, min(int(first.max()) + self.fading.most_blocks, self.fading.last_block) - block)

    def ahead(self, block: int, wanted: int, at_once: int, links: IntArray) -> FloatArray:
        """Return capacities over their means, for as many blocks as wanted or fewer, shape (blocks, n)."""
        place = np.flatnonzero(self._fades[links])
        faded = links[place]
        self._draw(faded, block, wanted, max(wanted, at_once))
        passed = block - self._base
        drawn = self._ratios[self._row[faded], passed : passed + wanted].T
        found = np.ones((len(drawn), links.size))
        found[:, place] = drawn
        over = self._first[faded] + self.fading.most_blocks
        if place.size and block + len(drawn) > over.min():
            found[:, place] = np.where(np.arange(block, block + len(drawn))[:, None] >= over, 1.0, drawn)
        return found

    def _draw(self, faded: IntArray, block: int, wanted: int, length: int) -> None:
        """Draw what is missing of some links from a block on, in the present window or in a new one."""
        missing = faded[self._row[faded] == _NONE]
        left = self._base + self._ratios.shape[1] - block
        outside = block < self._base or left <= 0
        wasteful = left > wanted and missing.size * left > _MOST_DRAWN
        if outside or wasteful or self._rows + missing.size > len(self._ratios):
            self._base, self._rows, left, missing = block, 0, length, faded
            self._ratios = np.empty((2 * faded.size + _MORE_ROWS, length))
            self._row[:] = _NONE
        if missing.size:
            rows = np.arange(self._rows, self._rows + missing.size)
            ratios = self.fading.ratios(missing, np.arange(block, block + left))
            self._ratios[rows, block - self._base :] = ratios.T
            self._row[missing] = rows
            self._rows += missing.size
