"""Numbers for the few links of a big network that something flows through at present."""

import numpy as np

from fedsim.network.base import FloatArray


class LinksInUse:
    """The links that flows use, numbered without gaps, so that idle links cost nothing."""

    def __init__(self) -> None:
        self._number: dict[int, int] = {}
        self._holders: dict[int, int] = {}
        self._free: list[int] = []
        self._capacity_bps = np.zeros(16)

    def holds(self, link: int) -> bool:
        """Return whether anybody uses a link."""
        return link in self._number

    def hold(self, link: int, capacity_bps: float) -> int:
        """Return a link's number, giving it one if nobody used it yet."""
        number = self._number.get(link)
        if number is None:
            number = self._free.pop() if self._free else len(self._number)
            if number == self._capacity_bps.size:
                self._capacity_bps = np.append(self._capacity_bps, np.zeros(number))
            self._number[link], self._holders[link] = number, 0
            self._capacity_bps[number] = capacity_bps
        self._holders[link] += 1
        return number

    def release(self, link: int) -> None:
        """Give a link's number back when nobody uses it any more."""
        self._holders[link] -= 1
        if not self._holders[link]:
            del self._holders[link]
            self._free.append(self._number.pop(link))

    def set_capacity(self, link: int, capacity_bps: float) -> bool:
        """Change the capacity of a link; return whether anybody uses it."""
        number = self._number.get(link)
        if number is not None:
            self._capacity_bps[number] = capacity_bps
        return number is not None

    def capacity_bps(self) -> FloatArray:
        """Return the capacities by number; what stands at unused numbers does not matter."""
        return self._capacity_bps[: len(self._number) + len(self._free)]
