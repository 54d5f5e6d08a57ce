"""Files of rates over time: tables (CSV, Parquet, NPZ), and packet-delivery files of Mahimahi."""

from dataclasses import replace
from typing import Annotated, Final, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import DataError
from fedsim.inputs.archives import unpacked
from fedsim.inputs.paths import InputPath
from fedsim.inputs.tables import GAP, IDS, TIMES, After, Instants, Table, followed, identified, instants, note, owned
from fedsim.inputs.tables.content import TABLES, suffix_of, utf8
from fedsim.inputs.tables.header import UNITS, Name
from fedsim.network.traces.capacity import Capacities
from fedsim.registry import Settings
from fedsim.streams import Streams
from fedsim.traces import Assignment, Mapped, entries_of
from fedsim.units import BITS_PER_SECOND, SECONDS, Positive, Seconds

MAX_PIECES: Final = 1 << 24
"""Pieces of all traces of a file together."""
_LONGEST_LINE: Final = 20
_PACKET_BITS: Final = 8.0 * 1500.0
ColumnName = Annotated[str, Field(min_length=1)]


class RateFile(Settings):
    """Rates of one direction over time, from a file.

    Attributes
    ----------
    path : a table with the suffix ``.csv``, ``.parquet`` or ``.npz``, a row for each instant from which on a rate
        holds; measurements of MobiPerf (``.json``), with the columns ``time_s`` and ``down_kbps`` and ``up_kbps`` or,
        of one direction, ``rate_kbps``; any other suffix is a packet-delivery file of Mahimahi: one timestamp in
        milliseconds a line, each the opportunity to send one packet of 1,500 bytes, the last one the length of the
        trace
    rate : column of rates; a row without one is not used
    unit : of the rates; by default that of the column's name (``rate_mbps``, ``DL [Mbit/s]``), or else bit/s
    time : column of instants, which count from the first of the trace: seconds, dates, or hours such as ``23:59:59``
        Of several rows of an instant the mean holds. Where the column is left out, rows follow after `step_s`.
    time_unit : of the instants; by default that of the column's name, or else s
    step_s : length of each row, for tables without instants
    trace : column that says which rows belong to one trace; by default ``client``, ``id`` or ``device``, and without
        any the table is one trace
    after : after its last row a trace begins anew (``"repeat"``), its last rate holds (``"hold"``), or nothing is
        carried any more (``"none"``); by default it begins anew, which the run's notes say
    """

    path: InputPath
    rate: ColumnName = "rate_bps"
    unit: Literal["bit/s", "kbit/s", "Mbit/s", "B/s", "kB/s", "MB/s"] | None = None
    time: ColumnName | None = None
    time_unit: Literal["s", "ms", "us"] | None = None
    step_s: Positive[Seconds] | None = None
    trace: ColumnName | None = None
    after: After | None = None

    @property
    def _is_table(self) -> bool:
        return suffix_of(self.path) in TABLES

    @model_validator(mode="after")
    def _says_when(self) -> Self:
        if self._is_table and (self.time is None) == (self.step_s is None):
            given = "neither" if self.time is None else "both"
            raise ValueError(f"{given} of time and step_s is given; allowed: one of the two, for a table")
        fields = type(self).model_fields
        of_tables = [name for name, value in self if name not in ("path", "after") and value != fields[name].default]
        if of_tables and not self._is_table:
            raise ValueError(
                f"{', '.join(of_tables)} is for a table, whose path ends in {', '.join(TABLES)}; any other file is a "
                "packet-delivery file of Mahimahi, which has no columns"
            )
        return self

    def read(self, field: str = "") -> Capacities:
        """Return the rates of the traces; messages name the field of the file."""
        return self.of_clients(field, 0, "sequential", Streams(0))[0]

    def of_clients(self, field: str, clients: int, mapping: Mapped, streams: Streams) -> tuple[Capacities, IntArray]:
        """Return the rates of the traces, and the trace of each of K clients."""
        where = f"{field}: {self.path}" if field else self.path
        after = self.after or "repeat"
        if not self._is_table:
            if mapping == "id":
                raise DataError(f"{where}: mapping = 'id' is not allowed: it names no clients; allowed: a table")
            only = packet_opportunities(utf8(unpacked(self.path, where=where)), where)
            return Capacities.of([only], after, where), np.zeros(clients, dtype=np.int64)
        table = Table.read(self.path, field)
        if not 0 < table.rows <= MAX_PIECES:
            table.refuse(f"it has {table.rows} rows; allowed: 1 to {MAX_PIECES}")
        trace = table.find(*IDS) if self.trace is None else table.called(self.trace)
        by_id = mapping == "id" or (mapping is None and trace is not None and Name.of(trace).base in IDS[:2])
        if by_id:
            row, owner = owned(table, clients, "some", trace)
        else:
            row, owner = np.arange(table.rows), _numbered(table, trace)
        rates = Capacities.of(self._from_table(table, row, owner), after, where)
        if self.after is None:
            note(where, "after its last row a trace begins anew, as no after is stated")
        if not by_id:
            law: Assignment = "sequential" if mapping == "sequential" else "random"
            return rates, entries_of(clients, rates.traces, law, "trace-rates", streams)
        if rates.traces != clients:
            table.refuse(f"{clients - rates.traces} clients have rows without any rate; allowed: one for each client")
        return rates, np.arange(clients)

    def _from_table(self, table: Table, row: IntArray, owner: IntArray) -> list[tuple[FloatArray, FloatArray]]:
        unit = None if self.unit is None else UNITS[self.unit]
        rate_bps = table.numbers(self.rate, BITS_PER_SECOND, to=UNITS["bit/s"], given=unit, least=0.0, missing="nan")
        if np.isnan(rate_bps).all():
            table.refuse(f"{table.called(self.rate)}: it has no value in any row; allowed: at least one")
        if unit is None and table.unit(self.rate) is None:
            table.note_of(self.rate, "is read as bit/s: neither its name nor unit states another")
        if self.time is not None:
            times = instants(table, self.time, None if self.time_unit is None else UNITS[self.time_unit])
            return _pieces(table, self.time, owner, times.at(row), rate_bps[row])
        if (unread := table.find(*TIMES)) is not None:
            table.note_of(unread, f"is not read: each row lasts step_s = {self.step_s:g} s")
        table.refuse_first(self.rate, np.isnan(rate_bps), "numbers of at least 0 in rows of equal length")
        rows, step_s = row[np.argsort(owner, kind="stable")], self.step_s or 0.0
        parts = np.split(rows, np.flatnonzero(np.diff(np.sort(owner))) + 1)
        return [(np.arange(part.size + 1, dtype=np.float64) * step_s, rate_bps[part]) for part in parts]


def _numbered(table: Table, trace: str | None) -> IntArray:
    if trace is None:
        return np.zeros(table.rows, dtype=np.int64)
    ids, labels = identified(table, trace, -(10**15))
    places = np.unique(ids if labels is None else np.array(labels), return_inverse=True)[1]
    return np.asarray(places if labels is None else places[ids], dtype=np.int64)


def _pieces(
    table: Table, name: str, owner: IntArray, times: Instants, rate_bps: FloatArray
) -> list[tuple[FloatArray, FloatArray]]:
    """Return edges and rates of traces: the mean of the rows of an instant, the last row as long as the one before."""
    owner, value, rate_bps = followed(table, owner, times, rate_bps)
    first = np.flatnonzero((np.diff(owner, prepend=-1) != 0) | (np.diff(value, prepend=np.nan) != 0))
    rates = np.add.reduceat(rate_bps, first) / np.diff(first, append=owner.size)
    table.note(owner.size - first.size, "rows have the instant of another row: their mean rate holds")
    begins = np.flatnonzero(np.diff(owner[first], prepend=-1))
    if np.diff(begins, append=first.size).min() < 2:
        table.refuse(f"{name}: a trace has one instant; allowed: at least two, or step_s in place of time")
    edges_s = [replace(times, value=one).since(float(one[0])) for one in np.split(value[first], begins[1:])]
    lengths_s = [np.diff(edge_s) for edge_s in edges_s]
    gaps = sum(int((length_s > GAP * np.median(length_s)).sum()) for length_s in lengths_s)
    longest_s = max(length_s.max() for length_s in lengths_s)
    table.note(gaps, f"gaps between rows, of up to {longest_s:g} s: the rate before them holds")
    if longest_s > SECONDS.greatest:
        table.refuse(f"{name}: {longest_s:g} s between two rows are not allowed; allowed: up to {SECONDS.greatest:g} s")
    ends_s = [np.append(edge_s, edge_s[-1] + length_s[-1]) for edge_s, length_s in zip(edges_s, lengths_s, strict=True)]
    return list(zip(ends_s, np.split(rates, begins[1:]), strict=True))


def packet_opportunities(content: bytes, where: str) -> tuple[FloatArray, FloatArray]:
    """Return edges in seconds and rates in bit/s of a packet-delivery file of Mahimahi.

    A packet at t ms may be sent in the millisecond that ends at t, and one at 0 in the first. So a file of the one
    line ``1`` is a rate of 12 Mbit/s.
    """
    every = list(map(bytes.strip, content.splitlines()))
    lines = list(filter(None, every))
    places = (place for place, line in enumerate(lines) if not line.isdigit() or len(line) > _LONGEST_LINE)
    if (odd := next(places, None)) is not None:
        raise DataError(
            f"{where}: line {_line(every, odd)}: {lines[odd][:_LONGEST_LINE].decode('utf-8', 'replace')!r} is not "
            "allowed; a packet-delivery file has whole milliseconds, one number a line, and the path of a table ends "
            f"in {', '.join(TABLES)}"
        )
    if not lines or len(lines) > MAX_PIECES:
        raise DataError(f"{where}: it has {len(lines)} lines; allowed: 1 to {MAX_PIECES}")
    stamps = np.array(lines, dtype=np.float64)
    if (falls := np.flatnonzero(np.diff(stamps) < 0) + 1).size:
        raise DataError(
            f"{where}: line {_line(every, falls[0])}: {stamps[falls[0]]:.0f} ms comes before the line above; allowed: "
            "times that rise"
        )
    if not 0 < stamps[-1] <= 1e12:
        raise DataError(f"{where}: its last timestamp is {stamps[-1]:.0f} ms; allowed: from 1 to 1e12")
    busy_ms, packets = np.unique(np.maximum(stamps, 1.0), return_counts=True)
    edge_ms = np.unique(np.concatenate([[0.0], busy_ms - 1.0, busy_ms]))
    rate_bps = np.zeros(edge_ms.size - 1)
    rate_bps[np.searchsorted(edge_ms, busy_ms - 1.0)] = packets * _PACKET_BITS * 1e3
    return edge_ms / 1e3, rate_bps


def _line(every: list[bytes], place: int) -> int:
    """Return the number of a line by its place among those that are not empty."""
    return [number for number, line in enumerate(every, 1) if line][place]
