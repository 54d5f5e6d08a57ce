"""What numbers of a scenario and of files are refused or unusual, because no device and no network has them."""

from collections.abc import Iterator, Sequence
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

USUAL: Final = {
    "bandwidth_hz": (1e3, 1e10),
    "carrier_hz": (1e5, 1e12),
    "_bps": (1.0, 1e13),
    "_kbps": (1e-3, 1e10),
    "power_dbm": (-80.0, 90.0),
    "_gain_dbi": (-60.0, 80.0),
    "noise_figure_db": (0.0, 40.0),
    "_m_per_s": (1e-3, 1e4),
    "radius_m": (0.1, 1e8),
    "distance_m": (0.1, 1e8),
    "height_m": (0.1, 1e5),
    "delay_s": (1e-9, 1e5),
    "rtt_s": (1e-6, 1e3),
    "samples_per_s": (1e-6, 1e9),
    "flops_per_s": (1e3, 1e20),
}
"""Least and greatest values of what there is, by the end of a field's name: a thousandfold error mostly leaves them."""


def unusual(path: str, unit: str, values: Sequence[float]) -> Iterator[str]:
    """Yield what is of another size than usual in a field, in words: the least of its values, and the greatest."""
    least, greatest = next((USUAL[end] for end in USUAL if path.endswith(end)), (-float("inf"), float("inf")))
    for value in sorted({min(values), max(values)}) if len(values) else ():
        if value and not least <= (value if least <= 0 else abs(value)) <= greatest:
            yield f"{value:.6g} {unit} is unusual; usual: {least:g} to {greatest:g} {unit}; is the unit right?"


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
