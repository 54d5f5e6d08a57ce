"""Names of columns: the unit that a name states, and the column that is meant by a name."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from fedsim.arrays import FloatArray
from fedsim.inputs.quantities import MULTIPLES


class Unit(NamedTuple):
    """A unit: the base unit (s, m, bit/s), and what makes that of a number; one of the two is 1."""

    of: str
    times: float = 1.0
    over: float = 1.0

    def to(self, other: "Unit", values: FloatArray) -> FloatArray:
        """Return numbers of this unit in another one."""
        return values if self == other else values * self.times / self.over * other.over / other.times


_NO_SUFFIX: Final = {"b", "B", "d"}
"""Units that are letters of many a name."""


def _units() -> dict[str, Unit]:
    known = {
        name: Unit(of, *((float(size), 1.0) if size >= 1 else (1.0, float(1 / size))))
        for of, sizes in MULTIPLES.items()
        if of not in ("h", "kbit/s", "1/s")
        for name, size in sizes.items()
        if name not in _NO_SUFFIX
    }
    known |= {name.lower(): known[name] for name in MULTIPLES["dB"]} | dict.fromkeys(("dBW", "dbw"), Unit("dBW"))
    # A charge is no energy, and a level over 1 W none over 1 mW: they are known, so that they are refused there.
    known |= {"Ah": Unit("Ah"), "mAh": Unit("Ah", over=1e3)}
    known |= dict.fromkeys(("°", "deg", "degree", "degrees", "rad"), Unit("degrees"))
    known |= dict.fromkeys(("ft", "feet"), Unit("m", 0.3048)) | dict.fromkeys(("mi", "miles"), Unit("m", 1609.344))
    return known | {"mph": Unit("m/s", 0.44704)} | dict.fromkeys(("%", "percent", "pct"), Unit("shares", over=1e2))


UNITS: Final = _units()
"""Units by name; those of bits and bytes differ in their case."""
IDS: Final = ("client", "id", "device")
"""Columns of ids of clients; ``client_id``, ``ClientID``, ``# client`` and ``cid`` are spellings of them."""
_OWNER: Final = re.compile(r"^(client|device|id)s?(?:_?(?:ids?|no|nr|num|number|index|idx))?$")
_SMALL: Final = {name.lower(): UNITS[name] for name in sorted(UNITS) if "B" not in name and name[-1] != "b"}
"""In small letters; of mW and MW the smaller one."""
_QUOTIENT: Final = re.compile(r"(?:(.*)_)?([^_]+_per_[^_]+)")
_LAST: Final = re.compile(r"(?:(.*)_)?([^_]+)")
_BITS_A_SECOND: Final = re.compile(r"(bits?|bytes?)_s(?:ec(?:ond)?)?$", re.IGNORECASE)
_RATES: Final = ("bps", "flops")
"""Ends of units that are also names of columns."""
NUMBER: Final = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$|^[+-]?(?i:inf|infinity)$"
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
        words = _BITS_A_SECOND.sub(r"\1/s", re.sub(r"[\s-]+", "_", text.strip()))
        found = _BRACKETS.match(text.strip()) or _QUOTIENT.fullmatch(words) or _LAST.fullmatch(words)
        base, last = (found[1] or "", found[2].replace("_per_", "/")) if found else ("", "")
        last = re.sub("/sec(ond)?$", "/s", last, flags=re.IGNORECASE)
        # MB/S may be bits or bytes.
        small = "" if last.upper().endswith("B/S") and "B" in last else last.lower()
        unit = UNITS.get(last, _SMALL.get(small)) if base or "/" in last or small.endswith(_RATES) else None
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
