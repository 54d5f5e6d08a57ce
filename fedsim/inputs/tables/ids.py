"""The client of each row: one rule of ids for all tables, whose names are those of clients in the order of reading."""

import re
from collections.abc import Collection, Iterable
from itertools import repeat
from typing import Final, Literal, NamedTuple, cast

import numpy as np

from fedsim.arrays import IntArray
from fedsim.inputs.tables.header import IDS, NUMBER, Name
from fedsim.inputs.tables.reading import Reading, current, note, short
from fedsim.inputs.tables.table import Table

_SHOWN: Final = 5
_OTHER_IDS: Final = (
    *("client", "device", "user", "uid", "uuid", "guid", "node", "name", "worker", "party", "participant", "vehicle"),
    *("ue", "imsi", "imei", "mac", "host", "hostname", "station", "phone", "id"),
)
"""Words of columns that may name clients, and are not taken for their ids."""
_INDICES: Final = {"column_1", "unnamed:_0", "index", "_index_level_0_"}
Each = Literal["one", "some", "any"]
"""How many rows a client has: one, at least one, or any number."""


class Owned(NamedTuple):
    """Rows that belong to clients, in the order of the table, and the client of each."""

    row: IntArray
    client: IntArray


def owned(table: Table, clients: int, each: Each, column: str | None = None) -> Owned:
    """Return the rows of K clients; where each has one row, in the order of clients, and without ids row i for i."""
    name = table.find(*IDS) if column is None else table.called(column)
    if name is None:
        if each != "one":
            table.called(IDS[0])
        if table.rows < clients:
            table.refuse(f"it has {table.rows} rows; there must be one for each of the {clients} clients")
        table.note(table.rows - clients, f"of {table.rows:,} rows not used: there are {clients} clients")
        note_order(table, "client", "client or id", _OTHER_IDS)
        first = np.arange(clients, dtype=np.int64)
        return Owned(first, first)
    ids = clients_of(table, name, clients)
    fits = (ids >= 0) & (ids < clients)
    counts = np.bincount(ids[fits], minlength=clients)
    if each == "one" and (counts > 1).any():
        twice = int(np.flatnonzero(counts > 1)[0])
        again = int(np.flatnonzero(ids == twice)[1])
        table.refuse(f"{name}, row {again + 1}: client {twice} has a row before; allowed: one of each client")
    without = np.flatnonzero(counts == 0)
    if without.size and (each != "any" or not fits.all()):
        _, labels = identified(table, name)
        there: Iterable[object] = range(clients) if labels is None else list(current().clients)[:clients]
        table.refuse(
            f"{name}: there is no row of client {without[0]}; the ids in it are "
            f"{_shown(np.unique(ids).tolist() if labels is None else labels)}, and the clients are {_shown(there)}"
        )
    table.note(int((~fits).sum()), f"of {table.rows:,} rows not used: they are of no client of {clients}")
    row = np.flatnonzero(fits)
    if each != "one":
        table.note(without.size, f"of {clients:,} clients have no row ({_shown(without.tolist())})")
        return Owned(row, ids[row])
    row = row[np.argsort(ids[row], kind="stable")]
    return Owned(row, ids[row])


def note_order(table: Table, what: str, asked: str, words: Collection[str] = ()) -> None:
    """Note columns that may name what rows are of, which is their place: by a word, or an index of its own."""
    whole = {column: Name.of(column).whole for column in table.columns}
    others = [
        column
        for column, name in whole.items()
        if not set(words).isdisjoint(name.split("_")) and len(table.labels(column)[1]) == table.rows
    ]
    indices = [column for column in whole if whole[column] in _INDICES and table.is_numeric(column)]
    others += [column for column in indices if table.values(column).tolist() != list(range(table.rows))]
    if others:
        note(table.where, f"rows are those of {what}s 0, 1, ...: {', '.join(others)} is no column {asked}")


def clients_of(table: Table, name: str, clients: int, least: int = 0) -> IntArray:
    """Return the client of each row, or a number that is none's."""
    ids, labels = identified(table, name, least)
    run = current()
    if labels is not None:
        return _numbered(table, ids, labels, clients)
    if run.clients:
        table.refuse(_two_ways(run, f"{name} has the ids {_shown(np.unique(ids).tolist())}"))
    run.numbered_in = run.numbered_in or table.where
    return ids


def identified(table: Table, name: str, least: int = 0) -> tuple[IntArray, list[str] | None]:
    """Return the number of each row's id, and names by their first rows, whose places these are; None for numbers."""
    if table.is_numeric(name):
        return table.whole(name, least, f"whole numbers from {least}"), None
    place, labels = table.labels(name)
    long, as_number = isinstance(table.values(name), np.ndarray), re.compile(NUMBER).match
    is_odd = (label is None or (as_number(label) and not (long and label.isdecimal())) for label in labels)
    odd = np.fromiter(is_odd, np.bool_, len(labels))
    if odd.any():
        # Of numbers among names and names among numbers, the fewer.
        which = np.argmax(odd == (odd.sum() * 2 <= odd.size))
        table.refuse_first(name, place == which, "whole numbers from 0 in all rows, or names in all rows")
    return place, cast(list[str], labels)


def _numbered(table: Table, place: IntArray, labels: list[str], clients: int) -> IntArray:
    """Return the client of each row by its name, -1 for none; names that are new are those of the next clients."""
    run = current()
    if run.numbered_in:
        table.refuse(_two_ways(run, f"{table.find(*IDS)} has the names {_shown(labels)}"))
    named = len(run.clients)
    new = [label for label in labels if label not in run.clients] if named else labels
    added = new[: max(clients - named, 0)]
    run.clients.update(zip(added, range(named, named + len(added)), strict=True))
    if named and added:
        note(table.where, f"{len(added)} clients ({_shown(added)}) are not named in {short(run.named_in)}")
    if not run.named_in:
        note(table.where, f"clients 0, 1, ... are {_shown(run.clients)}")
    run.named_in = run.named_in or table.where
    return np.fromiter(map(run.clients.get, labels, repeat(-1)), np.int64, len(labels))[place]


def _two_ways(run: Reading, here: str) -> str:
    other = run.numbered_in or run.named_in
    there = "numbers" if run.numbered_in else f"the names {_shown(list(run.clients))}"
    return f"{here}, and {other} has {there}; allowed: numbers in all tables of a run, or names"


def _shown(ids: Iterable[object]) -> str:
    """Return some ids in words, the first and the last of many."""
    every = list(ids)
    few = every if len(every) <= _SHOWN else [*every[: _SHOWN - 1], "...", every[-1]]
    return ", ".join(map(str, few)) or "none"
