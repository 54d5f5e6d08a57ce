"""Random choices from a seed: each seed is another case, and the same case each time."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Seeded:
    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)  # noqa: S311

    def pick(self, choices: Sequence[Any]) -> Any:
        return self._random.choice(choices)

    def chance(self, percent: int) -> bool:
        return self._random.random() * 100 < percent


def distinct(make: Callable[[int], T], number: int, first: int = 0) -> Iterator[tuple[int, T]]:
    """Yield a number of cases that differ, each with its seed; a seed whose case has come before is left out."""
    seen: set[int] = set()
    for seed in range(first, first + 2 * number):
        case = make(seed)
        key = hash(str(case))
        if key not in seen:
            seen.add(key)
            yield seed, case
            if len(seen) == number:
                return
    assert number == 0, f"of {2 * number} seeds only {len(seen)} gave another case"
