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
_NAMES: Final = ("computation", "communication")
_UNITS: Final = (UNITS["ms"], UNITS["kbit/s"])


def entries_of(clients: int, entries: int, mapping: Assignment, name: str, streams: Streams) -> IntArray:
    """Return the entry of a trace that each of K clients gets, shape (K,)."""
    client = np.arange(clients, dtype=np.int64)
    if mapping == "sequential":
        return client % entries
    return np.asarray(streams.uniform(name, client) * entries, dtype=np.int64)


def capacities_of(
    path: str | Path, field: str, mapping: Mapped, clients: int, streams: Streams
) -> tuple[FloatArray, FloatArray]:
    """Return compute times in ms per sample and bandwidths in kbit/s of K clients, from the devices of a file."""
    table = Table.read(path, field)
    compute, bandwidth = (
        table.numbers(name, NUMBER, to=unit, least=0.0) for name, unit in zip(_NAMES, _UNITS, strict=True)
    )
    if not table.rows:
        table.refuse("it has no row; allowed: at least one device")
    if mapping == "id" or (mapping is None and table.find("client", "id") is not None):
        entry = owned(table, clients, "one").row
    else:
        entry = entries_of(clients, table.rows, mapping or "random", "trace-capacity", streams)
    return compute[entry], bandwidth[entry]
