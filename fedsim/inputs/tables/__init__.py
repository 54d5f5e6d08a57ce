"""One reader of tables: placements, mobility, availability, rates, windows, values of clients, splits and logs."""

from fedsim.inputs.tables.ids import IDS, Owned, identified, owned
from fedsim.inputs.tables.reading import note, reading
from fedsim.inputs.tables.table import Table
from fedsim.inputs.tables.times import DAY_S, After, Instants, in_order, instants, origin_of, picked

__all__ = [
    "DAY_S",
    "IDS",
    "After",
    "Instants",
    "Owned",
    "Table",
    "identified",
    "in_order",
    "instants",
    "note",
    "origin_of",
    "owned",
    "picked",
    "reading",
]
