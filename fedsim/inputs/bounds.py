"""What numbers of a scenario and of files are refused, because no device and no network has them."""

from collections.abc import Iterator
from typing import Final

from fedsim.errors import FedsimError
from fedsim.units import Bound

LATEST_S: Final = 1e12
"""A run whose clock passes this second is refused."""
MOST_PAIRS: Final = 2**28
"""Clients times sites of a network: each pair takes a few numbers of memory."""
WHOLE: Final = Bound(0, 10**9)
"""Whole numbers without a unit."""
NUMBER: Final = Bound(1e-12, 1e12)
"""Other numbers without a unit."""
WORD: Final = Bound(0, 2**63 - 1)
"""Whole numbers without a unit in parts that are not fedsim's own; TOML holds no greater one."""


def out_of_bounds(value: object, stated: Bound | None, *, own: bool = True) -> tuple[object, Bound] | None:
    """Return the first number of a field that is not allowed, with the bound; None where all are."""
    for number in _numbers(value):
        whole = isinstance(number, int)
        bound = stated or ((WHOLE if whole else NUMBER) if own else WORD if whole else None)
        if bound is not None and not bound.admits(number):
            return number, bound
    return None


def check_pairs(clients: int, sites: int, error: type[FedsimError]) -> None:
    """Refuse a network with more pairs of a client and a site than memory is made for."""
    if clients * sites > MOST_PAIRS:
        raise error(
            f"network: {clients} clients and {sites} sites are {clients * sites} pairs; allowed: at most {MOST_PAIRS}, "
            "by fewer of either"
        )


def _numbers(value: object) -> Iterator[int | float]:
    if isinstance(value, int | float):
        if not isinstance(value, bool):
            yield value
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _numbers(inner)
