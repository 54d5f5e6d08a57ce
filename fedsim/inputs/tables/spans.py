"""Spans of time of clients or devices, such as sessions and passes: sorted, apart, repeated with a period or not."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from fedsim.arrays import FloatArray, IntArray
from fedsim.inputs.tables.published import LAST_STEP
from fedsim.inputs.tables.reading import counted
from fedsim.inputs.tables.table import Table
from fedsim.inputs.tables.times import DAY_S, GAP, TIMES, After, Instants, followed, instants, origin_of, picked
from fedsim.units import SECONDS

_LAST: Final = "the last end of a device may be left out where after is not 'none'"
_AWAY: Final = {
    *("0", "n", "f", "false", "no", "off", "offline", "unavailable", "inactive"),
    *("away", "down", "absent", "disconnected", "gone"),
}
_STATES: Final = ("online", "available", "active", "state", "status")
_MAY_STATE: Final = (
    *("is_online", "is_available", "is_active", "availability"),
    *("presence", "present", "connected", "is_connected", "event", "type"),
)
"""Columns of states, and columns that hold some."""


@dataclass(frozen=True)
class Intervals:
    """The online intervals of n devices in one row, sorted and disjoint within each device."""

    offset: IntArray
    start_s: FloatArray
    end_s: FloatArray
    period_s: FloatArray

    @classmethod
    def of(
        cls, device: ArrayLike, start_s: ArrayLike, end_s: ArrayLike, period_s: ArrayLike, where: str = ""
    ) -> "Intervals":
        """Return intervals given in any order, sorted; those that overlap or touch become one."""
        period = np.asarray(period_s, dtype=np.float64)
        owner, start, end = np.asarray(device, dtype=np.int64), np.asarray(start_s, float), np.asarray(end_s, float)
        over = (end < start) & (start < period[owner])
        outside, empty = start >= period[owner], (start == end) & (start < period[owner])
        cut = (end > period[owner]) & ~outside
        for rows, what in (
            (over, "spans end before they start: they last over the end of the period"),
            (cut, "spans are cut at the end of the period"),
            (outside, "spans not used: they begin at the end of the period, or later"),
            (empty, "spans not used: they have no length"),
        ):
            counted(where, int(rows.sum()), what)
        owner, start = np.append(owner, owner[over]), np.append(start, np.zeros(over.sum()))
        end = np.append(np.where(over, period[owner[: end.size]], end), end[over])
        end = np.minimum(end, period[owner])
        kept = np.flatnonzero(end > start)
        kept = kept[np.lexsort((start[kept], owner[kept]))]
        owner, start, end = _joined(owner[kept], start[kept], end[kept])
        counted(where, kept.size - start.size, "spans overlap or touch one before them: they are one")
        offset = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=period.size))])
        return cls(offset, start, end, period)

    @property
    def devices(self) -> int:
        return self.period_s.size


def _joined(owner: IntArray, start: FloatArray, end: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return sorted intervals in which those of one owner that overlap or touch have become one."""
    if not owner.size:
        return owner, start, end
    # By their ranks, and shifted by its owner, a span can only meet one of the same owner.
    values = np.unique(np.append(start, end))
    begins, ends = (np.searchsorted(values, one) + owner * values.size for one in (start, end))
    first = np.flatnonzero(np.append(True, begins[1:] > np.maximum.accumulate(ends)[:-1]))
    return owner[first], start[first], np.maximum.reduceat(end, first)


def read_spans(
    table: Table,
    row: IntArray,
    device: IntArray,
    devices: int,
    *,
    period_s: float | None,
    after: After,
    origin: float | str | None,
) -> Intervals:
    """Return the spans between the starts and ends in some rows of a table, of the device of each row."""
    if not table.rows:
        table.refuse("it has no row; allowed: at least one")
    least = 0.0 if origin is None else -np.inf
    names: tuple[tuple[str, ...], tuple[str, ...]] = ("start_s", "start"), ("end_s", "end")
    has_rows = table.find(*names[0]) is None and table.find(*TIMES) is not None
    _refuse_away(table, spans=not has_rows)
    if has_rows:
        names = TIMES, TIMES
        start = end = instants(table, table.called(*TIMES), least=least)
        begins = origin_of(table, [start], origin)
        row, device, start_s, end_s = _seen(table, row, device, start.at(row), after, begins)
    else:
        start, end = (instants(table, table.called(*name), least=least) for name in names)
        if start.kind == "clock" or start.dated:
            end = end.after(start)
        begins = origin_of(table, [start, end], origin)
        start_s, end_s = start.since(begins)[row], end.since(begins)[row]
    if after == "repeat":
        if period_s and table.find("period_s"):
            table.note_of("period_s", f"is not read: the scenario states period_s = {period_s:g}")
        of_day = DAY_S if start.kind == "clock" and table.find("period_s") is None else None
        period = _periods(table, period_s or of_day, device, devices, row)
        if origin is not None or start.kind == "clock" or (start.kind == "date" and period_s is None):
            start_s, end_s = _moved(start_s, end_s, period[device])
    else:
        period, early, over = np.full(devices, np.inf), start_s < 0, (end_s <= 0) & (start_s <= end_s)
        table.note(int((early & ~over).sum()), "spans are cut at the beginning of the run")
        table.note(int(over.sum()), "spans not used: they end before the beginning of the run")
        device, row, start_s, end_s = picked(~over, device, row, np.maximum(start_s, 0.0), end_s)
    _refuse_times(table, names, row, device, start_s, end_s, period, after)
    open_ended = np.isnan(end_s)
    table.note(int(open_ended.sum()), "spans have no end: they last to the end of the period")
    return Intervals.of(device, start_s, np.where(open_ended, period[device], end_s), period, table.where)


def _refuse_away(table: Table, *, spans: bool) -> None:
    """Refuse spans in which a column says that a client is away, and rows with states."""
    for state in filter(table.find, (*_STATES, *_MAY_STATE)):
        place, labels = table.labels(state)
        away = np.array([label is not None and label.lower() in _AWAY for label in labels], dtype=np.bool_)[place]
        if not spans and (away.any() or state in _STATES):
            found = table.called(state)
            table.refuse(f"{found}: states are not read; allowed: a row for each span, with start_s and end_s")
        table.refuse_first(state, away, "rows for spans in which a client is there")


def _refuse_times(
    table: Table,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    row: IntArray,
    device: IntArray,
    start_s: FloatArray,
    end_s: FloatArray,
    period_s: FloatArray,
    after: After,
) -> None:
    """Refuse spans without a start or, but for the last of a device, an end, and those that end before they start."""
    latest_s = np.full(period_s.size, -np.inf)
    np.maximum.at(latest_s, device, np.nan_to_num(start_s, nan=np.inf))
    endless = np.isnan(end_s) & ((after == "none") | (start_s < latest_s[device]))
    far, back = f"times up to {SECONDS.greatest:g} s", (end_s < start_s) & np.isinf(period_s[device])
    first_s = start_s[back][:1].sum()
    for name, wrong, allowed in (
        (names[0], np.isnan(start_s), "times"),
        (names[1], endless, f"times; {_LAST}"),
        (names[0], start_s > SECONDS.greatest, far),
        (names[1], np.isfinite(end_s) & (end_s > SECONDS.greatest), f"{far}; {_LAST}"),
        (names[1], back, f"ends of at least {first_s:g} s, the start, or a period over whose end a span lasts"),
    ):
        table.refuse_first(table.called(*name), wrong, allowed, row)


def _seen(
    table: Table, row: IntArray, device: IntArray, times: Instants, after: After, begins: float
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return row, device, start and end of each span without a gap in which a device has rows."""
    device, value, row = followed(table, device, times, row)
    time_s = replace(times, value=value).since(begins)
    same = np.diff(device, prepend=-1) == 0
    step_s = np.diff(time_s, prepend=np.nan)
    steps_s = step_s[same & (step_s > 0)]
    if not steps_s.size:
        table.refuse("no client has rows at two instants; allowed: rows as long as a client is there")
    usual_s = float(np.median(steps_s))
    first = np.flatnonzero(~(same & (step_s <= GAP * usual_s)))
    last = np.append(first[1:], device.size) - 1
    table.note(first.size, f"spans of presence follow from the rows: gaps are longer than {GAP * usual_s:g} s")
    end_s = time_s[last] + usual_s
    if after == "hold":
        latest_s = instants(table, LAST_STEP).since(begins).max() if table.find(LAST_STEP) else time_s.max()
        end_s[end_s > latest_s] = np.inf
    return row[first], device[first], time_s[first], end_s


def _moved(start_s: FloatArray, end_s: FloatArray, period_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return intervals within the period that begins at an origin in their midst."""
    length_s = np.where(end_s < start_s, end_s + period_s - start_s, end_s - start_s)
    start_s = np.where(length_s >= period_s, 0.0, np.mod(start_s, period_s))
    reach_s = start_s + length_s
    return start_s, np.where((reach_s > period_s) & (length_s < period_s), reach_s - period_s, reach_s)


def _periods(table: Table, period_s: float | None, device: IntArray, devices: int, row: IntArray) -> FloatArray:
    if period_s is not None:
        return np.full(devices, period_s)
    if table.find("period_s") is None:
        names = ", ".join(table.columns)
        table.refuse(
            f"there is no column 'period_s'; its columns: {names}; allowed: the field period_s, the period of all "
            "devices, or after = 'none', with which nothing is repeated"
        )
    stated = table.numbers("period_s", SECONDS, least=SECONDS.least)
    if stated.size == devices and "offset" in table.columns:
        return stated
    period = np.full(devices, np.nan)
    period[device[::-1]] = stated[row[::-1]]
    if (other := np.flatnonzero(stated[row] != period[device])).size:
        table.refuse(f"period_s, row {row[other[0]] + 1}: a device has two periods; allowed: one")
    return np.where(np.isnan(period), 1.0, period)
