"""Keys of the draws from one stream of a server, which may draw several times in a round."""


class Draws:
    """Draws from one stream."""

    def __init__(self) -> None:
        self._last = self._times = 0

    def keys(self, number: int) -> tuple[int, ...]:
        """Return the keys of the next draw: the round, and for repeated draws of that round how many came before."""
        self._times = self._times + 1 if self._last == number else 0
        self._last = number
        return (number, self._times) if self._times else (number,)
