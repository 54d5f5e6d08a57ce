"""Names of columns: the unit that a name states, and the column that is meant by a name."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from fedsim.arrays import FloatArray


class Unit(NamedTuple):
    """A unit: what it measures, and what makes the base unit of a number (s, m, bit/s); one of the two is 1."""

    of: str
    times: float = 1.0
    over: float = 1.0

    def to(self, other: "Unit", values: FloatArray) -> FloatArray:
        """Return numbers of this unit in another one."""
        return values if self == other else values * self.times / self.over * other.over / other.times


_BITS: Final = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
UNITS: Final[dict[str, Unit]] = {
    **{name: Unit("time") for name in ("s", "sec", "secs", "second", "seconds")},
    **{name: Unit("time", over=1e3) for name in ("ms", "msec", "milliseconds")},
    **{name: Unit("time", over=1e6) for name in ("us", "µs", "μs", "usec", "microseconds")},
    "ns": Unit("time", over=1e9),
    **{name: Unit("time", 60.0) for name in ("min", "minutes")},
    **{name: Unit("time", 3600.0) for name in ("h", "hours")},
    **{name: Unit("length") for name in ("m", "metres", "meters")},
    "km": Unit("length", 1e3),
    "cm": Unit("length", over=1e2),
    **{f"{k}{name}": Unit("rate", n) for k, n in _BITS.items() for name in ("bit/s", "bits/s", "bps", "b/s", "bitps")},
    **{f"{k}{name}": Unit("rate", 8 * n) for k, n in _BITS.items() for name in ("B/s", "Bps", "byte/s", "bytes/s")},
}
"""Units by name; those of bits and bytes differ in their case."""
IDS: Final = ("client", "id", "device")
"""Columns of ids of clients; ``client_id``, ``ClientID``, ``# client`` and ``cid`` are spellings of them."""
_OWNER: Final = re.compile(r"^(client|device|id)s?(?:_?(?:ids?|no|nr|num|number|index|idx))?$")
_SMALL: Final = {name.lower(): UNITS[name] for name in UNITS if "B" not in name}
NUMBER: Final = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity)$"
"""A cell that is a number."""
_BRACKETS: Final = re.compile(r"^(.*?)[\s_]*[\[(]\s*([^\[\]()]+?)\s*[\])]$")


@dataclass(frozen=True)
class Name:
    """The name of a column in small letters, without its unit, and the unit."""

    whole: str
    base: str
    unit: Unit | None

    @classmethod
    def of(cls, text: str) -> "Name":
        """Return the parts of ``time_ms``, ``Rate (Mbit/s)`` or `` Client``."""
        found = _BRACKETS.match(text.strip())
        base, last = (found.group(1), found.group(2)) if found else text.strip().rpartition("_")[::2]
        # A quotient such as samples_per_s has another unit than its last word.
        whole = base and (found or "_per_" not in _plain(text))
        # MB/S and KIB/S may be bits or bytes.
        small = "" if last.upper().endswith("B/S") and "B" in last else last.lower()
        unit = UNITS.get(last, _SMALL.get(small)) if whole else None
        return cls(_plain(text), _plain(base if unit else text), unit)


def meant(asked: str, columns: Iterable[str]) -> list[str]:
    """Return the columns that a name may mean: that of the name, those in another case, or those in another unit."""
    there = list(columns)
    if asked in there:
        return [asked]
    wanted, names = Name.of(asked), {name: Name.of(name) for name in there}
    alike = [name for name, found in names.items() if found.whole == wanted.whole]
    if alike or asked in IDS:
        return alike
    return [
        name
        for name, found in names.items()
        if found.unit and found.base == wanted.base and (wanted.unit is None or wanted.unit.of == found.unit.of)
    ]


def _plain(text: str) -> str:
    plain = re.sub(r"[\s_-]+", "_", text.lstrip("# \t").strip().lower())
    owner = _OWNER.match(plain)
    return owner[1] if owner else IDS[0] if plain == "cid" else plain
