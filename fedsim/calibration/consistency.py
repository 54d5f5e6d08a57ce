"""What the columns of a log say of one another: each row once, phases that fill the time from start to end, units."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.errors import DataError

_WHEN: Final = ("round", "start_s")
"""Columns with which a row names a participation, so that an equal row is the same one."""
_ROUNDED_S: Final = 0.01
_LITTLE: Final = 0.05
"""Share of a participation by which clocks may differ."""
_OTHER_UNIT: Final = 100.0
_LONG_S: Final = 2e5
"""Participations of more than two days are unusual, and those of some minutes in milliseconds are as long."""


def once(columns: Mapping[str, NDArray[Any]], where: str) -> tuple[dict[str, NDArray[Any]], str]:
    """Return columns with each row once, in their order, and a note on those that stand there twice."""
    size = columns["client"].size
    rows = np.arange(size)
    if any(name in columns for name in _WHEN):
        # Most rows differ in the few columns that name a participation.
        name = _together([column for key, column in columns.items() if key in ("client", *_WHEN)])
        alike = np.flatnonzero(np.bincount(name)[name] > 1)
        again = np.setdiff1d(alike, alike[np.unique(_together(_of(columns, alike).values()), return_index=True)[1]])
        rows = np.delete(rows, again)
        if "start_s" in columns:
            _check_once(name[rows], rows, columns, where)
    else:
        number = _together(columns.values())
        for times in (3, 2):
            if size % times == 0 and not np.ptp(number.reshape(times, -1), axis=0).any():
                rows = rows[: size // times]
                break
    if rows.size == size:
        return dict(columns), ""
    first = int(np.setdiff1d(np.arange(size), rows)[0]) + 1
    note = f"{size - rows.size:,} rows stand there twice and count once; the first of them is row {first}"
    return _of(columns, rows), note


def _check_once(name: IntArray, rows: IntArray, columns: Mapping[str, NDArray[Any]], where: str) -> None:
    """Refuse two rows that name one participation, which took some time, and say unlike things of it."""
    first, row_of = np.empty(name.max(initial=-1) + 1, dtype=np.int64), np.arange(name.size)
    first[name[::-1]] = row_of[::-1]
    again = np.flatnonzero(first[name] != row_of)
    if "end_s" in columns:
        again = again[(columns["end_s"] > columns["start_s"])[rows[again]]]
    if again.size:
        row = int(again[0])
        above = int(first[name[row]])
        names = ", ".join(name for name in ("client", *_WHEN) if name in columns)
        raise DataError(
            f"{where}: row {rows[row] + 1} names the participation of row {rows[above] + 1} again ({names}), with "
            "other values; allowed: a row for each participation"
        )


def _of(columns: Mapping[str, NDArray[Any]], rows: IntArray) -> dict[str, NDArray[Any]]:
    return {name: column[rows] for name, column in columns.items()}


def numbered(column: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """Return the different entries of a column, numbers or texts, and the number of each row's, shape (n,)."""
    entries, number = np.unique(column if column.dtype.kind in "biuf" else column.astype(str), return_inverse=True)
    return entries, number.astype(np.int64)


def _together(columns: Iterable[NDArray[Any]]) -> IntArray:
    """Return a number for each row, shape (n,); equal rows have the same."""
    (_, number), *others = map(numbered, columns)
    for entries, code in others:
        number = np.unique(number * len(entries) + code, return_inverse=True)[1].astype(np.int64)
    return number


def between_s(start_s: FloatArray, end_s: FloatArray, where: str) -> FloatArray:
    """Return how long each participation took, shape (n,); refuse ends before starts."""
    took_s = end_s - start_s
    if (wrong := np.flatnonzero(took_s < 0)).size:
        row = int(wrong[0])
        raise DataError(
            f"{where}: row {row + 1}: end_s = {end_s[row]:g} is not allowed; it is at least start_s = {start_s[row]:g}"
        )
    return took_s


def left_s(took_s: FloatArray, phases_s: FloatArray) -> FloatArray:
    """Return what participations took beside some phases, shape (n,); 0 where that is a matter of rounding."""
    beside_s = took_s - phases_s
    return np.where(beside_s <= _little(took_s), 0.0, beside_s)


def check_phases(took_s: FloatArray, phases_s: FloatArray, names: str, where: str, *, all_known: bool) -> str:
    """Refuse phases that take longer than from start to end, or if all are known a hundredth of it."""
    longer = np.flatnonzero(phases_s > took_s + np.maximum(_ROUNDED_S, _LITTLE * took_s))
    ratio = float(np.median(phases_s)) / max(float(np.median(took_s)), 1e-12)
    if longer.size or (all_known and 0 < ratio < 1 / _OTHER_UNIT):
        row = int(longer[0]) if longer.size else int(np.argmax(took_s - phases_s))
        unit = ""
        if not 1 / _OTHER_UNIT < ratio < _OTHER_UNIT:
            unit = f"; in the median they are {ratio:.3g} times as long: are all in seconds?"
        raise DataError(
            f"{where}: row {row + 1}: {names} are {phases_s[row]:.6g} s together, and end_s - start_s is "
            f"{took_s[row]:.6g} s{unit}; allowed: start_s and phases that add up to end_s"
        )
    gap_s = took_s - phases_s
    apart = gap_s > _little(took_s)
    if not apart.any():
        return ""
    return (
        f"{np.count_nonzero(apart):,} of {took_s.size:,} participations take longer than {names} together, in the "
        f"median by {np.median(gap_s[apart]):.4g} s, which is left out"
    )


def unusual(spent_s: FloatArray) -> str:
    """Return a note on participations that take days in the median; nothing for others."""
    median_s = float(np.median(np.nansum(spent_s, axis=0)))
    return (
        f"participations take {median_s:.4g} s in the median: are all times in seconds?" if median_s > _LONG_S else ""
    )


def never_ended(spent_s: FloatArray, reached: BoolArray, ended: BoolArray, phases: tuple[str, ...]) -> str:
    """Return in words which phase has times and none that ended, all of shape (3, n); nothing if there is none."""
    for phase, name in enumerate(phases):
        if np.isfinite(spent_s[phase]).any() and not ended[phase].any():
            cut_s = spent_s[phase][reached[phase]]
            seen = (
                f"{cut_s.size:,} were cut in it, after {cut_s.max():.4g} s at most" if cut_s.size else "none reached it"
            )
            return f"{name}_s: none of {spent_s.shape[1]:,} participations ended its {name} ({seen})"
    return ""


def _little(took_s: FloatArray) -> FloatArray:
    """Return the time that rounding of a log and clocks may explain, shape (n,)."""
    return np.maximum(_ROUNDED_S, 0.01 * took_s)
