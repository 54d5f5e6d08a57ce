"""Files of rates over time: tables (CSV, Parquet, NPZ), and packet-delivery files of Mahimahi."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fedsim.arrays import FloatArray
from fedsim.errors import DataError, suggest
from fedsim.inputs.bounds import check_column
from fedsim.inputs.files import MAX_BYTES, read_bytes
from fedsim.inputs.paths import InputPath
from fedsim.network.traces.capacity import Capacities
from fedsim.registry import Settings
from fedsim.traces import read_columns
from fedsim.units import BITS_PER_SECOND, SECONDS, Positive, Seconds

MAX_PIECES: Final = 1 << 24
"""Pieces of all traces of a file together."""
_LONGEST_LINE: Final = 20
_PER_SECOND: Final[Mapping[str, float]] = {"s": 1.0, "ms": 1e3, "us": 1e6}
_BITS: Final[Mapping[str, float]] = {
    "bit/s": 1.0,
    "kbit/s": 1e3,
    "Mbit/s": 1e6,
    "B/s": 8.0,
    "kB/s": 8e3,
    "MB/s": 8e6,
}
Name = Annotated[str, Field(min_length=1)]


class RateFile(Settings):
    """Rates of one direction over time, from a file.

    Attributes
    ----------
    path : a table with the suffix ``.csv``, ``.parquet`` or ``.npz``, a row for each instant from which on a rate
        holds; any other suffix is a packet-delivery file of Mahimahi: one timestamp in milliseconds a line, each the
        opportunity to send one packet of 1,500 bytes, the last one the length of the trace
    rate : column of rates
    unit : of the rates
    time : column of instants, ascending within a trace; they count from the first
        Where it is left out, rows follow one another after `step_s`.
    time_unit : of the instants
    step_s : length of each row, for tables without instants
    trace : column that says which rows belong to one trace; without it the table is one trace
    """

    path: InputPath
    rate: Name = "rate_bps"
    unit: Literal["bit/s", "kbit/s", "Mbit/s", "B/s", "kB/s", "MB/s"] = "bit/s"
    time: Name | None = None
    time_unit: Literal["s", "ms", "us"] = "s"
    step_s: Positive[Seconds] | None = None
    trace: Name | None = None

    @model_validator(mode="after")
    def _says_when(self) -> Self:
        if Path(self.path).suffix in (".csv", ".parquet", ".npz") and (self.time is None) == (self.step_s is None):
            given = "neither" if self.time is None else "both"
            raise ValueError(f"{given} of time and step_s is given; allowed: one of the two, for a table")
        return self

    def read(self) -> Capacities:
        try:
            if Path(self.path).suffix in (".csv", ".parquet", ".npz"):
                return Capacities.of(self._from_table())
            return Capacities.of([packet_opportunities(read_bytes(self.path, MAX_BYTES, DataError))])
        except DataError as error:
            raise error if str(error).startswith(self.path) else DataError(f"{self.path}: {error}") from None

    def _from_table(self) -> list[tuple[FloatArray, FloatArray]]:
        columns = read_columns(self.path)
        rate_bps = _BITS[self.unit] * _numbers(columns, self.rate)
        if not rate_bps.size or rate_bps.size > MAX_PIECES:
            raise DataError(f"it has {rate_bps.size} rows; allowed: 1 to {MAX_PIECES}")
        check_column(rate_bps, "rate_bps", BITS_PER_SECOND, self.path, DataError)
        owner = np.zeros(rate_bps.size, dtype=np.int64)
        if self.trace is not None:
            owner = np.unique(_column(columns, self.trace), return_inverse=True)[1].reshape(-1)
            if owner.size != rate_bps.size:
                raise DataError(f"{self.trace}: it has {owner.size} rows, and {self.rate} has {rate_bps.size}")
        time_s = None if self.time is None else _numbers(columns, self.time) / _PER_SECOND[self.time_unit]
        if time_s is not None and time_s.size != rate_bps.size:
            raise DataError(f"{self.time}: it has {time_s.size} rows, and {self.rate} has {rate_bps.size}")
        order = np.argsort(owner, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(owner[order])) + 1)
        return [(self._edges_s(time_s, rows), rate_bps[rows]) for rows in parts]

    def _edges_s(self, time_s: FloatArray | None, rows: NDArray[np.int64]) -> FloatArray:
        """Return the instants between the rows of a trace, and its end: the last row is as long as the one before."""
        if time_s is None:
            return np.asarray(np.arange(rows.size + 1, dtype=np.float64) * (self.step_s or 0.0))
        instants_s = time_s[rows] - time_s[rows[0]]
        if rows.size < 2:
            raise DataError(f"{self.time}: a trace has one row; allowed: at least two, or step_s in place of time")
        length_s = np.diff(instants_s)
        if not np.all(length_s > 0):
            row = int(rows[1:][length_s <= 0][0])
            raise DataError(f"{self.time}, row {row + 1}: {time_s[row].item()!r} s does not come after the row before")
        check_column(length_s, "length_s", SECONDS, self.path, DataError)
        return np.append(instants_s, instants_s[-1] + length_s[-1])


def packet_opportunities(content: bytes) -> tuple[FloatArray, FloatArray]:
    """Return edges in seconds and rates in bit/s of a packet-delivery file of Mahimahi.

    A packet at t ms may be sent in the millisecond that ends at t, and one at 0 in the first. So a file of the one
    line ``1`` is a rate of 12 Mbit/s.
    """
    lines = content.split()
    for number, line in enumerate(lines, start=1):
        if not line.isdigit() or len(line) > _LONGEST_LINE:
            shown = line[:_LONGEST_LINE].decode("utf-8", "replace")
            raise DataError(f"line {number}: {shown!r} is not allowed; a packet-delivery file has whole milliseconds")
    if not lines or len(lines) > MAX_PIECES:
        raise DataError(f"it has {len(lines)} lines; allowed: 1 to {MAX_PIECES}")
    stamps = np.array(lines, dtype=np.float64)
    if np.any(np.diff(stamps) < 0):
        row = int(np.flatnonzero(np.diff(stamps) < 0)[0]) + 2
        raise DataError(f"line {row}: {stamps[row - 1]:.0f} ms comes before the line above; allowed: times that rise")
    if not 0 < stamps[-1] <= 1e12:
        raise DataError(f"its last timestamp is {stamps[-1]:.0f} ms; allowed: from 1 to 1e12")
    busy_ms, packets = np.unique(np.maximum(stamps, 1.0), return_counts=True)
    edge_ms = np.unique(np.concatenate([[0.0], busy_ms - 1.0, busy_ms]))
    rate_bps = np.zeros(edge_ms.size - 1)
    rate_bps[np.searchsorted(edge_ms, busy_ms - 1.0)] = packets * _PACKET_BITS * 1e3
    return edge_ms / 1e3, rate_bps


_PACKET_BITS: Final = 8.0 * 1500.0


def _column(columns: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    if name not in columns:
        raise DataError(f"there is no column {name!r}{suggest(name, columns)}; its columns: {', '.join(columns)}")
    return columns[name]


def _numbers(columns: Mapping[str, NDArray[Any]], name: str) -> FloatArray:
    found = _column(columns, name)
    if found.dtype.kind not in "iuf" or found.ndim != 1:
        raise DataError(f"{name} holds {found.dtype}; it must hold numbers")
    numbers = found.astype(np.float64)
    wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"{name}, row {row + 1}: {numbers[row].item()!r} is not allowed; allowed: numbers of at least 0"
        )
    return numbers
