"""The links that flows use, numbered without gaps, so that idle links cost nothing."""

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.network.topology.faded_links import FadedLinks


class LinksInUse:
    def __init__(self, faded: FadedLinks | None = None) -> None:
        self._number: dict[int, int] = {}
        self._faded = faded
        self._free: list[int] = []
        self._capacity_bps = np.zeros(16)
        self._users = np.zeros(16, dtype=np.int64)

    def holds(self, link: int) -> bool:
        return link in self._number

    def number(self, link: int) -> int | None:
        """Return the number of a link; None if no flow uses it."""
        return self._number.get(link)

    def hold(self, link: int, capacity_bps: float) -> int:
        """Return the number of a link with one more user; a link without users is given a number."""
        number = self._number.get(link)
        if number is None:
            number = self._free.pop() if self._free else len(self._number)
            if number == self._capacity_bps.size:
                self._capacity_bps = np.append(self._capacity_bps, np.zeros(number))
                self._users = np.append(self._users, np.zeros(number, dtype=np.int64))
            self._number[link] = number
            self._capacity_bps[number] = capacity_bps
            if self._faded is not None:
                self._faded.add(number, link)
        self._users[number] += 1
        return number

    def release(self, link: int) -> None:
        """Remove one user of a link, and free its number after the last."""
        number = self._number[link]
        self._users[number] -= 1
        if not self._users[number]:
            self._free.append(self._number.pop(link))
            if self._faded is not None:
                self._faded.remove(number)

    def set_capacity(self, link: int, capacity_bps: float) -> bool:
        """Change the capacity of a link; return whether any flow uses it."""
        number = self._number.get(link)
        if number is not None:
            self._capacity_bps[number] = capacity_bps
        return number is not None

    def capacity_bps(self) -> FloatArray:
        """Return the capacities by number; values at unused numbers have no meaning."""
        return self._capacity_bps[: len(self._number) + len(self._free)]

    def users(self) -> IntArray:
        return self._users[: len(self._number) + len(self._free)]
