"""Bounds of every number that a scenario may hold, by the unit in which the name of its field ends.

They are far beyond what devices and networks have. Within them sums and products of a run stay finite, a clock of 64
bits still tells microseconds apart, and no setting alone makes a run endless. A field may have narrower ones of its
own.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from fedsim.errors import FedsimError

LATEST_S: Final = 1e12
"""A run whose clock passes this second is refused."""

MOST_PAIRS: Final = 2**28
"""Clients times sites of a network: each pair takes a few numbers of memory."""


class Bound(NamedTuple):
    """The numbers that are allowed: 0, and those whose absolute value lies between two limits."""

    least: float
    greatest: float

    def admits(self, value: float) -> bool:
        """Return whether a number is allowed; a field refuses 0 and numbers below 0 itself."""
        return value == 0 or self.least <= abs(value) <= self.greatest

    def words(self) -> str:
        """Return in words what is allowed."""
        greatest = str(self.greatest) if isinstance(self.greatest, int) else f"{self.greatest:g}"
        return f"absolute values {f'from {self.least:g} to' if self.least else 'up to'} {greatest}"


LONGEST_S: Final = 1e10
"""About 317 years; up to here a clock of 64 bits tells two microseconds apart."""

BY_UNIT: Final[Mapping[str, Bound]] = {
    "j_per_bit": Bound(1e-18, 1e6),
    "j_per_flop": Bound(1e-24, 1e3),
    "flops_per_sample": Bound(1e-3, 1e24),
    "flops_per_s": Bound(1e-3, 1e24),
    "samples_per_s": Bound(1e-9, 1e12),
    "m_per_s": Bound(1e-6, 1e5),
    "per_db": Bound(1e-3, 1e6),
    "per_s": Bound(1e-12, 1e6),
    "s": Bound(1e-9, LONGEST_S),
    "bits": Bound(1e-6, 1e15),
    "bps": Bound(1e-6, 1e15),
    "kbps": Bound(1e-9, 1e12),
    "hz": Bound(1e-3, 1e15),
    "m": Bound(1e-6, 1e9),
    "db": Bound(0.0, 1e3),
    "dbm": Bound(0.0, 1e3),
    "dbi": Bound(0.0, 1e3),
    "j": Bound(1e-9, 1e15),
    "w": Bound(1e-12, 1e12),
    "h": Bound(0.0, 1e6),
}
"""Name of a unit, as names of fields end with it -> bound of numbers in that unit."""

MOST_SMOOTHING: Final = Bound(0, 10**6)
"""Of windows of means in figures."""

BY_NAME: Final[Mapping[str, Bound]] = {
    "seed": Bound(0, 2**63 - 1),
    "clients": Bound(0, 10**8),
    "cells": Bound(0, 10**4),
    "iterations": Bound(0, 10**6),
    "epochs": Bound(0, 10**6),
    "steps": Bound(0, 10**8),
    "coherence_s": Bound(1e-6, LONGEST_S),
    "delay_spread_s": Bound(1e-12, 1e-3),
    "block_s": Bound(1e-6, LONGEST_S),
    "mean_good_s": Bound(1e-3, LONGEST_S),
    "mean_bad_s": Bound(1e-3, LONGEST_S),
    "measured_every_s": Bound(1e-3, 3600.0),
    "time_to_trigger_s": Bound(1e-3, 60.0),
    "reselect_after_s": Bound(1e-3, 3600.0),
    "rounds": Bound(0, 10**4),
    "slot_s": Bound(1e-3, LONGEST_S),
    "retry_s": Bound(1e-3, LONGEST_S),
    "give_up_s": Bound(1e-3, LONGEST_S),
    "tiers": Bound(0, 10**4),
    "buffer": Bound(0, 10**5),
    "range_m": Bound(1e-3, 1e9),
    "step_m": Bound(1e-2, 1e9),
    "decorrelation_m": Bound(1e-2, 1e9),
    "indoor_decorrelation_m": Bound(1e-2, 1e9),
    "exponent": Bound(0.0, 20.0),
    "data_exponent": Bound(0.0, 20.0),
    "heterogeneity": Bound(0.0, 1e6),
    "growth": Bound(0.0, 1e3),
    "smoothing": MOST_SMOOTHING,
    "basis": Bound(0, 2**14),
    "harmonics": Bound(0, 64),
    "hidden": Bound(0, 2**16),
    "positions_m": Bound(0.0, 1e9),
    "x_m": Bound(0.0, 1e9),
    "y_m": Bound(0.0, 1e9),
    "points": Bound(0.0, LONGEST_S),
}
"""Name of a field -> bound, where it is another than that of its unit."""

WHOLE: Final = Bound(0, 10**9)
"""Whole numbers without a unit."""
NUMBER: Final = Bound(1e-12, 1e12)
"""Other numbers without a unit."""
WORD: Final = Bound(0, 2**63 - 1)
"""Whole numbers without a unit in parts that are not fedsim's own; TOML holds no greater one."""

_LONGEST_UNIT: Final = max(unit.count("_") for unit in BY_UNIT) + 1


def unit_bound(name: str) -> Bound | None:
    """Return the bound of a field by its name or the unit in which its name ends; None where it says neither.

    >>> unit_bound("deadline_s").greatest
    10000000000.0
    """
    if name in BY_NAME:
        return BY_NAME[name]
    steps = name.split("_")
    endings = ("_".join(steps[-length:]) for length in range(min(_LONGEST_UNIT, len(steps)), 0, -1))
    return next((BY_UNIT[ending] for ending in endings if ending in BY_UNIT and len(steps) > 1), None)


def out_of_bounds(name: str, value: object, *, own: bool = True) -> tuple[object, Bound] | None:
    """Return the first number of a field that is not allowed, with the bound; None where all are."""
    known = unit_bound(name)
    for number in _numbers(value):
        whole = isinstance(number, int)
        bound = known or ((WHOLE if whole else NUMBER) if own else WORD if whole else None)
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
