"""Instants of a column, in seconds from an origin: numbers, dates with and without zones, seconds since 1970, hours."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from typing import Annotated, Any, Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BeforeValidator

from fedsim.arrays import FloatArray, IntArray
from fedsim.inputs.arrow import as_texts, numbers_of
from fedsim.inputs.tables.header import NUMBER, UNITS, Unit
from fedsim.inputs.tables.reading import current, note
from fedsim.inputs.tables.table import Table
from fedsim.units import SECONDS, Bound

After = Literal["repeat", "hold", "none"]
"""What follows the last row: the table again, its last value for ever, or nothing."""


def _written(value: object) -> object:
    """Return a date or an hour, such as TOML and pandas have them, as text."""
    return value.isoformat() if isinstance(value, date | time) else value


Origin = Annotated[float | str | None, BeforeValidator(_written)]
"""The instant of a table at which the run begins; a date or an hour is written as text."""
DAY_S: Final = 86_400.0
TIMES: Final = ("time_s", "time", "timestamp", "datetime", "date", "t")
"""Columns of instants."""
GAP: Final = 2.5
"""Times the median step between rows beyond which a step is a gap."""
_SINCE_1970_S: Final = (1e9, 4.1e9)
"""Instants from 2001 to 2099."""
_CLOCK: Final = re.compile(r"^(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?$")
_DOTTED: Final = re.compile(r"^(\d{4})[./](\d{2})[./](\d{2})[_ T](\d{2})[.:](\d{2})[.:](\d{2}(?:\.\d+)?)$")
_TRIED: Final = 100
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ANY: Final = Bound(0.0, 1e300)
Kind = Literal["seconds", "date", "clock", "local"]
"""What instants are; a local date has no zone."""


@dataclass(frozen=True)
class Instants:
    """Instants of n rows, NaN where there is none: seconds, us since 1970, or seconds of a day."""

    value: FloatArray
    kind: Kind
    zoned: bool | None = None
    """Whether dates state a zone; None where that is not known."""
    dated: bool = False
    """Whether dates are hours of the days in another column."""

    def at(self, rows: NDArray[Any]) -> "Instants":
        """Return the instants of some rows, by their places or by a mask."""
        return replace(self, value=self.value[rows])

    def since(self, origin: float) -> FloatArray:
        """Return seconds from an origin of the same kind on."""
        return (self.value - origin) / (1e6 if self.kind == "date" else 1.0)

    def after(self, start: "Instants") -> "Instants":
        """Return hours of days that end what has begun: those below its start are of the first day after it."""
        day = DAY_S * (1e6 if self.kind == "date" else 1.0)
        return replace(self, value=self.value + day * np.maximum(np.ceil((start.value - self.value) / day), 0.0))

    def by_days(self, table: Table, owner: IntArray) -> "Instants":
        """Return hours of days that follow one another: those below the owner's row before are of the next day."""
        if self.kind != "clock":
            return self
        order = np.argsort(owner, kind="stable")
        falls = (np.diff(self.value[order], prepend=np.inf) < 0) & (np.diff(owner[order], prepend=-1) == 0)
        table.note(int(falls.sum()), "rows are of the next day: their hour comes before that of the row above them")
        days = np.cumsum(falls)
        first = np.flatnonzero(np.diff(owner[order], prepend=-1))
        value = self.value.copy()
        value[order] += DAY_S * (days - np.repeat(days[first], np.diff(np.append(first, days.size))))
        return replace(self, value=value)


def instants(table: Table, name: str, given: Unit | None = None, least: float = -np.inf) -> Instants:
    """Return the instants of a column, whose unit its name or the scenario states; seconds by default."""
    values = table.values(name)
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        kept = table.columns[table.called(name)]
        kind = None if isinstance(kept, np.ndarray) else kept.type
        zoned = kind.tz is not None if isinstance(kind, pa.TimestampType) else None
        return Instants(np.where(np.isnat(values), np.nan, values.astype(np.int64)), "date", zoned)
    if isinstance(values, np.ndarray):
        return _of_numbers(table, name, given, least)
    if (dates := _of_dates(values)) is not None:
        return Instants(*dates)
    if (joined := _with_date(table, name)) is not None:
        return replace(instants(joined, name), dated=True)
    place, labels = table.labels(name)
    found = [_of_text(label) for label in labels]
    kinds = {kind for number, kind in found if kind}
    unlike = [
        one
        for one, (_, kind) in enumerate(found)
        if labels[one] is not None and (kind is None or (kind != found[0][1] and len(kinds) > 1))
    ]
    # A word among seconds, before seconds among dates.
    odd = [one for one in unlike if not re.match(NUMBER, labels[one] or "")] or unlike
    allowed = "seconds, dates such as 2024-03-01T10:00:00+01:00, all with a zone or all without, or 22:00"
    table.refuse_first(name, np.isin(place, odd[:1]), allowed)
    kind = kinds.pop() if kinds else "seconds"
    if kind == "clock" and not any(label and label.count(":") > 1 for label in labels):
        table.note_of(name, "is read as hours and minutes of a day; minutes and seconds are 00:12:30")
    if kind == "clock" and (days := table.find("weekday", "day_of_week", "dow", "day")):
        table.note_of(days, "is not read: hours are those of each day, or of the days in a column date")
    zoned = {"local": False, "date": True}.get(kind)
    return Instants(np.array([instant for instant, _ in found])[place], "date" if kind == "local" else kind, zoned)


def _of_numbers(table: Table, name: str, given: Unit | None, least: float) -> Instants:
    stated = table.unit(name) or given
    number = table.numbers(name, _ANY, to=UNITS["s"], given=given, missing="nan")
    there = number[np.isfinite(number)]
    for unit in ("s", "ms", "us", "ns") if stated in (None, UNITS["s"]) else ("s",):
        first, last = (one * UNITS[unit].over for one in _SINCE_1970_S)
        if there.size and first <= there.min() and there.max() < last:
            what = unit if stated in (None, UNITS["s"]) else "a time"
            table.note_of(name, f"is read as {what} since 1970, by its size")
            return Instants(np.rint(number * (1e6 / UNITS[unit].over)), "date")
    if there.size and there.min() < _SINCE_1970_S[0] <= there.max() < _SINCE_1970_S[1]:
        # Seconds of a run among those since 1970, or the other way round.
        late = number >= _SINCE_1970_S[0]
        wrong = late if late.sum() * 2 <= late.size else number < _SINCE_1970_S[0]
        table.refuse_first(name, wrong, "seconds of a run in all rows, or since 1970 in all")
    if stated is None and (days := _of_digits(there)) is not None:
        table.note_of(name, "is read as dates such as 20240301, by its size")
        value = np.full(number.size, np.nan)
        value[np.isfinite(number)] = days
        table.refuse_first(name, np.isnan(value) & np.isfinite(number), "days that there are, such as 20240301")
        return Instants(value, "date", zoned=False)
    number = table.numbers(name, SECONDS, to=UNITS["s"], given=given, least=least, missing="nan")
    if stated is None and there.size:
        table.note_of(name, "is read as seconds: its name states no unit")
    if table.find("date") not in (None, table.called(name)):
        table.note_of("date", f"is not read: {table.called(name)} has seconds, and no hours of a day")
    return Instants(number, "seconds")


def _with_date(table: Table, name: str) -> Table | None:
    """Return a table whose instants have the dates of another column, if there are hours and such a column."""
    import pyarrow.compute as pc

    found = table.find("date")
    hours = table.values(name)
    if found in (None, table.called(name)) or isinstance(hours, np.ndarray):
        return None
    if not pc.all(pc.match_substring_regex(hours, _CLOCK.pattern), min_count=0).as_py():
        return None
    days = pc.replace_substring_regex(as_texts(table.columns[found]), r"[ T]00:00:00(\.0+)?$", "")
    return Table({table.called(name): pc.binary_join_element_wise(days, hours, "T")}, table.where)


def origin_of(table: Table, times: list[Instants], origin: float | str | None) -> float:
    """Return the instant of a table at which the run begins: as the scenario says, or 0, or the first date."""
    kinds = {one.kind for one in times if np.isfinite(one.value).any()}
    if len(kinds) > 1:
        table.refuse(f"its instants are {' and '.join(sorted(kinds))}; allowed: one of them in a table")
    if {True, False} <= {one.zoned for one in times}:
        table.refuse("its dates in one column have a zone, and those in another none; allowed: all or none of them")
    kind = kinds.pop() if kinds else "seconds"
    if isinstance(origin, str):
        return _named(table, times, origin, kind)
    if kind == "clock" and origin is None:
        note(table.where, "the run begins at 00:00 (origin names another hour)")
    if kind != "date":
        return origin or 0.0
    first, run = float(np.nanmin(np.concatenate([one.value for one in times]))), current()
    if origin is not None:
        if first >= _SINCE_1970_S[0] * 1e6 and _of_digits(np.array([origin])) is not None:
            table.refuse(f"origin: {origin:.0f} is not allowed; allowed: a date in quotes, or seconds since 1970")
        return origin * 1e6
    if run.origin_us not in (None, first):
        table.refuse(
            f"its first instant is {_date(first)}, and that of {run.origin_of} is {_date(run.origin_us or 0.0)}; "
            "allowed: both with the field origin, the instant at which the run begins"
        )
    run.origin_us, run.origin_of = first, table.where
    note(table.where, f"the run begins at {_date(first)}, its first instant (origin names another)")
    return first


def _named(table: Table, times: list[Instants], origin: str, kind: Kind) -> float:
    number, of = _of_text(origin.strip())
    if of in ("date", "local") and any(one.zoned is (of == "local") for one in times):
        table.refuse(f"origin: {origin!r} is not allowed; allowed: a zone in it and in the table's dates, or in none")
    if ("date" if of == "local" else of) != kind:
        table.refuse(f"origin: {origin!r} is not allowed; the table has {_WORDS[kind]}")
    return number


def picked(at: NDArray[Any], *columns: NDArray[Any]) -> list[NDArray[Any]]:
    """Return some rows of columns, by their places or by a mask."""
    return [column[at] for column in columns]


def followed(table: Table, owner: IntArray, times: Instants, *columns: NDArray[Any]) -> list[NDArray[Any]]:
    """Return owners, instants and columns of the rows that have all of them, sorted by owners and instants, with notes.

    An hour below that of the owner's row before is of the next day.
    """
    known = np.all([np.isfinite(one) for one in (times.value, *columns)], axis=0)
    table.note(int((~known).sum()), "rows not used: a value is missing")
    owner, *others = picked(known, owner, *columns)
    value = times.at(known).by_days(table, owner).value
    by_owner = np.argsort(owner, kind="stable")
    moved = int((np.diff(value[by_owner])[np.diff(owner[by_owner]) == 0] < 0).sum())
    table.note(moved, "rows come before the row above them in time: rows are sorted")
    return picked(np.lexsort((value, owner)), owner, value, *others)


def _of_dates(values: NDArray[Any] | pa.StringArray) -> tuple[FloatArray, Kind, bool] | None:
    """Return us since 1970 of dates that are all written as ISO 8601 says, and whether all have a zone or none."""
    import pyarrow.compute as pc

    for zoned in (False, True):
        kind = pa.timestamp("us", "UTC") if zoned else pa.timestamp("us")
        try:
            # Arrow goes on after a cell that is no date, slowly.
            pc.cast(values[:_TRIED], kind)
            found = numbers_of(pc.cast(pc.cast(values, kind), pa.int64()))
        except pa.ArrowInvalid:
            continue
        return np.asarray(found, np.float64), "date", zoned
    return None


def _of_digits(number: FloatArray) -> FloatArray | None:
    """Return us since 1970 of days, if each number is a year, a month and a day in eight digits; NaN of no day."""
    if not number.size or not np.all((number >= 19700101) & (number <= 20991231) & (number == np.rint(number))):
        return None
    year, month, day = number // 10_000, number // 100 % 100, number % 100
    if not np.all((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)):
        return None
    months = ((year - 1970) * 12 + month - 1).astype(np.int64).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1).astype(np.int64)
    return np.where(days.astype("datetime64[M]") == months, days.astype(np.int64) * (DAY_S * 1e6), np.nan)


def _of_text(text: str | None) -> tuple[float, Kind | None]:
    """Return what a text says of time: us since 1970 or seconds of a day; (nan, None) for nothing."""
    if text is None:
        return np.nan, None
    if found := _CLOCK.match(text):
        hours, minutes, seconds = (float(part or 0) for part in found.groups())
        second = 3600 * hours + 60 * minutes + seconds
        return (second, "clock") if second <= DAY_S and minutes < 60 and seconds < 60 else (np.nan, None)
    if found := _DOTTED.match(text):
        text = "{}-{}-{}T{}:{}:{}".format(*found.groups())
    try:
        moment = datetime.fromisoformat(text.removesuffix(" UTC") + "+00:00" * text.endswith(" UTC"))
        kind: Kind = "date" if moment.tzinfo else "local"
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    except (ValueError, OverflowError):
        return np.nan, None
    return float(since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds), kind


def _date(us: float) -> str:
    return f"{np.datetime64(round(us), 'us')}Z".replace(".000000", "")


_WORDS: Final = {"seconds": "seconds", "date": "dates", "local": "dates", "clock": "hours of a day"}
