"""Entries of traces for clients, and tables of the speeds of devices."""

from pathlib import Path
from typing import Final, Literal

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.inputs.bounds import NUMBER
from fedsim.inputs.tables import Table, owned
from fedsim.inputs.tables.header import UNITS
from fedsim.streams import Streams

Assignment = Literal["random", "sequential"]
Mapped = Assignment | Literal["id"] | None
"""How clients get entries: each that of its id, or one by the law; None for ids where a table has ids of clients."""
_UNITS: Final = {"computation": UNITS["ms"], "communication": UNITS["kbit/s"]}


def entries_of(clients: int, entries: int, mapping: Assignment, name: str, streams: Streams) -> IntArray:
    """Return the entry of a trace that each of K clients gets, shape (K,)."""
    client = np.arange(clients, dtype=np.int64)
    if mapping == "sequential":
        return client % entries
    return np.asarray(streams.uniform(name, client) * entries, dtype=np.int64)


def capacity_of(
    path: str | Path,
    field: str,
    name: Literal["computation", "communication"],
    mapping: Mapped,
    clients: int,
    streams: Streams,
) -> FloatArray:
    """Return compute times in ms per sample or bandwidths in kbit/s of K clients, from the devices of a file."""
    table = Table.read(path, field)
    if not table.rows:
        table.refuse("it has no row; allowed: at least one device")
    capacity = table.numbers(name, NUMBER, to=_UNITS[name], least=NUMBER.least)
    if mapping == "id" or (mapping is None and table.find("client", "id") is not None):
        return capacity[owned(table, clients, "one").row]
    return capacity[entries_of(clients, table.rows, mapping or "random", "trace-capacity", streams)]
