"""One reader of tables: placements, mobility, availability, rates, windows, values of clients, splits and logs."""

from fedsim.inputs.tables.header import IDS
from fedsim.inputs.tables.ids import clients_of, identified, note_order, owned
from fedsim.inputs.tables.reading import counted, note, reading
from fedsim.inputs.tables.spans import Intervals, read_spans
from fedsim.inputs.tables.table import Table
from fedsim.inputs.tables.times import GAP, TIMES, After, Instants, Origin, followed, instants, origin_of, picked

__all__ = [
    "GAP",
    "IDS",
    "TIMES",
    "After",
    "Instants",
    "Intervals",
    "Origin",
    "Table",
    "clients_of",
    "counted",
    "followed",
    "identified",
    "instants",
    "note",
    "note_order",
    "origin_of",
    "owned",
    "picked",
    "read_spans",
    "reading",
]
