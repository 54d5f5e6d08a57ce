"""Links whose capacity changes from one fading block to the next, as arrays of blocks and links."""

from typing import Final, Protocol

import numpy as np

from fedsim.arrays import FloatArray, IntArray

_FIRST_NUMBERS: Final = 16
_NEVER: Final = -1


class LinkFading(Protocol):
    """The fading of some links of a network: what their capacity is in a block, over its mean.

    Attributes
    ----------
    coherence_s : length of a block
    most_blocks : blocks in a row for which a link that is in use fades; later ones have the mean
    last_block : blocks from this one on have the mean
    """

    @property
    def coherence_s(self) -> float:
        """Length of a block in seconds."""
        ...

    @property
    def most_blocks(self) -> int:
        """Blocks in a row that fade."""
        ...

    @property
    def last_block(self) -> int:
        """The first block that has the mean for all links."""
        ...

    def fades(self, link: int) -> bool:
        """Return whether the capacity of a link changes from block to block."""
        ...

    def ratios(self, link: IntArray, block: IntArray) -> FloatArray:
        """Return capacities over their means, >= 0, shape (b, n).

        Parameters
        ----------
        link : numbers of links that fade, shape (n,)
        block : numbers of blocks, shape (b,)
        """
        ...


class FadedLinks:
    """The capacities of the links in use in the blocks ahead, over their means; drawn once for each link and block.

    Links are known by the number that they have while they are in use.

    Parameters
    ----------
    fading : of the network's links

    Attributes
    ----------
    fading : of the network's links
    present : number of links in use that fade
    """

    def __init__(self, fading: LinkFading) -> None:
        self.fading = fading
        self.present = 0
        self._link = np.full(_FIRST_NUMBERS, -1, dtype=np.int64)
        self._first = np.full(_FIRST_NUMBERS, _NEVER, dtype=np.int64)
        self._drawn = np.ones(_FIRST_NUMBERS, dtype=np.bool_)
        self._ratios = np.ones((0, _FIRST_NUMBERS))
        self._base = 0

    def add(self, number: int, link: int) -> None:
        """Add a link that is in use from now on.

        Parameters
        ----------
        number, link : its number while it is in use, and in the network
        """
        if number >= self._link.size:
            more = self._link.size
            self._link = np.append(self._link, np.full(more, -1))
            self._first = np.append(self._first, np.full(more, _NEVER))
            self._drawn = np.append(self._drawn, np.ones(more, dtype=np.bool_))
            self._ratios = np.concatenate([self._ratios, np.ones((len(self._ratios), more))], axis=1)
        if self.fading.fades(link):
            self._link[number], self._first[number], self._drawn[number] = link, _NEVER, False
            self.present += 1

    def remove(self, number: int) -> None:
        """Remove a link that is no longer in use."""
        if self._link[number] >= 0:
            self._link[number], self._drawn[number] = -1, True
            self._ratios[:, number] = 1.0
            self.present -= 1

    def changed(self, number: int) -> None:
        """Draw a link anew: its fading is another."""
        self._drawn[number] = self._link[number] < 0

    def begin(self, block: int) -> int:
        """Let the links that are in use start to fade in a block; return for how many blocks any of them still does."""
        faded = self._link >= 0
        fresh = faded & (self._first == _NEVER)
        self._first[fresh] = block
        if not faded.any():
            return 0
        return max(0, min(int(self._first[faded].max()) + self.fading.most_blocks, self.fading.last_block) - block)

    def ahead(self, block: int, wanted: int, at_once: int, numbers: int) -> FloatArray:
        """Return capacities over their means by block and number, for as many blocks as wanted or fewer.

        Parameters
        ----------
        block : number of the first block
        wanted : number of blocks, >= 1
        at_once : number of blocks to draw where none is drawn yet, if that is more
        numbers : of links in use

        Returns
        -------
        array of shape (blocks, numbers)
            Ones for links that do not fade.
        """
        passed = block - self._base
        if not 0 <= passed < len(self._ratios):
            self._base, passed = block, 0
            self._ratios = np.ones((max(wanted, at_once), self._link.size))
            self._drawn = self._link < 0
        missing = np.flatnonzero(~self._drawn)
        if missing.size:
            blocks = np.arange(block, self._base + len(self._ratios))
            self._ratios[passed:, missing] = self.fading.ratios(self._link[missing], blocks)
            self._drawn[missing] = True
        found = self._ratios[passed : passed + wanted, :numbers]
        over = self._first + self.fading.most_blocks
        faded = self._link >= 0
        if block + len(found) > int(over[faded].min(initial=block + len(found))):
            past = (np.arange(block, block + len(found))[:, None] >= over[:numbers]) & faded[:numbers]
            found = np.where(past, 1.0, found)
        return np.asarray(found)
