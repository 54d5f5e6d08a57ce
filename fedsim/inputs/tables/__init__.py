"""One reader of tables: placements, mobility, availability, rates, windows, values of clients, splits and logs."""

from fedsim.inputs.tables.header import IDS as IDS
from fedsim.inputs.tables.ids import (
    clients_of as clients_of,
    identified as identified,
    note_order as note_order,
    owned as owned,
)
from fedsim.inputs.tables.reading import counted as counted, note as note, reading as reading
from fedsim.inputs.tables.spans import Intervals as Intervals, read_spans as read_spans
from fedsim.inputs.tables.table import Table as Table
from fedsim.inputs.tables.times import (
    GAP as GAP,
    TIMES as TIMES,
    After as After,
    Instants as Instants,
    Origin as Origin,
    followed as followed,
    instants as instants,
    origin_of as origin_of,
    picked as picked,
)
