"""Numbers as users give them: those of NumPy as Python's, and texts with a unit, such as ``"90 kHz"``."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Protocol, runtime_checkable

_PLAIN: Final = (int, float, str, bool, type(None), dict)
_NUMBERS: Final = {int, float}
_TEXT: Final = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S.*?)?\s*")

_NAMES: Final = ("kind", "column", "path")
"""Options of a law of values that are names."""

_POWERS: Final = (-9, -6, -6, -6, -3, 3, 3, 6, 9, 12)
_PREFIXES: Final = {prefix: f"1e{power}" for prefix, power in zip("nuµμmkKMGT", _POWERS, strict=True)}


@runtime_checkable
class _Axes(Protocol):
    """An array of any library, such as NumPy's or torch's."""

    @property
    def ndim(self) -> int: ...

    @property
    def shape(self) -> Any: ...

    def item(self) -> Any: ...

    def tolist(self) -> Any: ...


@runtime_checkable
class _Indexed(_Axes, Protocol):
    """A series of pandas, whose index is an array; that of a tensor is a method."""

    @property
    def index(self) -> Any: ...


def _with(prefixes: str, *names: str, size: str = "1") -> dict[str, Decimal]:
    """Return the sizes of units of several names, each with and without prefixes."""
    return {
        prefix + name: Decimal(_PREFIXES.get(prefix, "1")) * Decimal(size)
        for name in names
        for prefix in ("", *prefixes)
    }


_BYTES: Final = {"KiB": Decimal(8 * 2**10), "MiB": Decimal(8 * 2**20), "GiB": Decimal(8 * 2**30)}
_SIZES: Final = {**_with("kKMGT", "bit", "b", "bits"), **_with("kKMGT", "B", "bytes", size="8"), **_BYTES}
_RATES: Final = {
    **_with("kKMGT", "bit/s", "bps", "b/s", "bits/s", "bitps"),
    **_with("kKMGT", "B/s", "Bps", "byte/s", "bytes/s", size="8"),
    **{f"{name}/s": size for name, size in _BYTES.items()},
}
_HOURS: Final = {**_with("", "h", "hr", "hrs", "hour", "hours"), **_with("", "d", "day", "days", size="24")}
_SECONDS: Final = {
    **_with("nuµμm", "s", "sec", "secs", "second", "seconds"),
    "milliseconds": Decimal("1e-3"),
    "microseconds": Decimal("1e-6"),
    **_with("", "min", "mins", "minute", "minutes", size="60"),
    **{name: 3600 * size for name, size in _HOURS.items()},
}

MULTIPLES: Final[Mapping[str, Mapping[str, Decimal]]] = {
    "s": _SECONDS,
    "h": _HOURS,
    "bit": _SIZES,
    "bit/s": _RATES,
    "kbit/s": {name: size / 1000 for name, size in _RATES.items()},
    "m": {**_with("nuµμmk", "m", "metre", "metres", "meter", "meters"), "cm": Decimal("0.01")},
    "m/s": {**_with("k", "m/s"), **dict.fromkeys(("km/h", "kmh", "kph"), 1 / Decimal("3.6"))},
    "Hz": _with("kMGT", "Hz"),
    "dB": {name: Decimal(1) for name in ("dB", "dBm", "dBi")},
    "J": {**_with("nuµmkMG", "J"), **_with("mkM", "Wh", size="3600")},
    "J/bit": _with("nuµm", "J/bit"),
    "J/FLOP": _with("nuµm", "J/FLOP"),
    "W": _with("nuµmkM", "W"),
    "FLOP/s": _with("kMGT", "FLOP/s", "FLOPS", "flops", "flops/s"),
    "samples/s": {"samples/s": Decimal(1), "samples/min": 1 / Decimal(60)},
    "1/s": {"1/s": Decimal(1), "Hz": Decimal(1), "1/min": 1 / Decimal(60), "1/h": 1 / Decimal(3600)},
}
"""Sizes of the units that may stand in a text, by the unit of the field."""

_EXAMPLES: Final = {
    "s": "1000 ms",
    "h": "12 h",
    "bit": "2 MB",
    "bit/s": "5 Mbit/s",
    "kbit/s": "5 Mbit/s",
    "m": "1.5 km",
    "m/s": "50 km/h",
    "Hz": "90 kHz",
    "J": "5 kJ",
    "J/bit": "50 nJ/bit",
    "J/FLOP": "1 nJ/FLOP",
    "W": "200 mW",
    "FLOP/s": "2 GFLOPS",
    "samples/s": "50 samples/s",
    "1/s": "3 1/h",
}


def plain(value: Any) -> Any:
    """Return numbers of NumPy, and arrays and tensors without axes, as numbers of Python, also those of a list."""
    if type(value) in _PLAIN:
        return value
    if type(value) in (list, tuple):
        return value if set(map(type, value)) <= _NUMBERS else type(value)(map(plain, value))
    return value.item() if isinstance(value, _Axes) and value.ndim == 0 else value


def listed(value: Any) -> Any:
    """Return arrays, tensors and series as lists, also those in a list, and other values as they are."""
    if type(value) in (list, tuple):
        return value if set(map(type, value)) <= _NUMBERS else type(value)(map(listed, value))
    if type(value) in _PLAIN or not isinstance(value, _Axes):
        return value
    index = value.index if isinstance(value, _Indexed) else None
    if isinstance(index, _Axes) and index.tolist() != list(range(value.shape[0])):
        raise ValueError(f"its index is {str(index.tolist())[:60]}; allowed: 0, 1, 2, ..., as clients are numbered")
    return value.tolist()


def several(values: Any) -> Any:
    """Return a range, an array or a series, whatever its index, as a list of numbers of Python."""
    if isinstance(values, range):
        return list(values)
    return values.tolist() if isinstance(values, _Axes) else plain(values)


def lists(table: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the columns of a table, which may be a frame of pandas, as lists."""
    return {name: several(values) for name, values in dict(() if table is None else table).items()}


def in_unit(value: Any, unit: str, name: str) -> Any:
    """Return texts that begin with a number in the unit of a field, and other values as they are."""
    if isinstance(value, Mapping):
        return {key: one if key in _NAMES else in_unit(one, unit, name) for key, one in value.items()}
    if isinstance(value, list | tuple) and not set(map(type, value)) <= _NUMBERS:
        return type(value)(in_unit(one, unit, name) for one in value)
    found = _TEXT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    number, written = found.groups()
    own = level(name) if unit == "dB" else unit
    sizes = {own: Decimal(1)} if unit == "dB" else MULTIPLES[unit]
    written = written or ""
    alike = {size for one, size in sizes.items() if _alike(one, written)}
    size = sizes.get(written) or (alike.pop() if len(alike) == 1 else None)
    if size is None:
        example = _EXAMPLES.get(unit, f"-3.5 {own}")
        names = ", ".join({one: name for name, one in reversed(list(sizes.items()))}.values())
        raise ValueError(f"allowed: a number of {own}, or a text with a unit, such as '{example}' (units: {names})")
    return float(Decimal(number) * size)


def _alike(one: str, other: str) -> bool:
    """Return whether two names of units differ in their case alone; of MBPS and mbps, bits are meant."""
    return one.casefold() == other.casefold() and all((mark in one) == (mark in other) for mark in ("Bps", "iB"))


def level(name: str) -> str:
    return {"dbm": "dBm", "dbi": "dBi"}.get(name.rpartition("_")[2], "dB")
