"""The tables of a run, described once: each column with its type, unit, labels, null rule and meaning.

Arrow schemas, label dictionaries, the checks of the recorder, the format of run folders and the page of the columns all
follow from `TABLES`. A new column is one `Column` here and one value where it is known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fedsim.arrays import IntArray
from fedsim.errors import RunError
from fedsim.history.outcomes import NO_VALUE, Coded, Fate, Outcome, Phase, RoundEnd

Labels = type[Coded]
Piece = NDArray[Any] | float
"""Some rows of a column: an array, or a number that stands for all of them."""
_LABEL: Final = pa.dictionary(pa.int8(), pa.string())
_FIRST_NUMBERED: Final = 2
"""The first format whose run folders carry its number."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : in the table
    type : Arrow type; labels are a dictionary of strings
    doc : what it holds
    unit : of its numbers; empty for counts, indices, shares and labels
    labels : the enumeration whose codes are given and whose labels are stored; None for numbers
    null : when it has no value, in words; empty for a column that always has one. In an array no value is a number
        below 0 (NaN for a float), in a row it is None
    since : format of run folders that has the column first
    """

    name: str
    type: pa.DataType
    doc: str
    unit: str = ""
    labels: Labels | None = None
    null: str = ""
    since: int = _FIRST_NUMBERED

    def from_codes(self, values: NDArray[Any]) -> pa.Array:
        """Return an Arrow array of numbers or codes in which no value is null, shape (n,); (n, m) for lists of m."""
        if pa.types.is_list(self.type):
            return self._lists(np.full(len(values), values.shape[1]), values.ravel(), None)
        if pa.types.is_map(self.type):  # given in rows alone
            return pa.nulls(len(values), self.type)
        none = None
        if self.null:
            none = np.isnan(values) if values.dtype.kind == "f" else values < 0
        if self.labels is not None:
            codes = self._array(values, self.type.index_type, none)
            return pa.DictionaryArray.from_arrays(codes, _texts(self.labels.labels()))
        return self._array(values, self.type, none)

    def from_values(self, values: Sequence[Any]) -> pa.Array:
        """Return an Arrow array of values, one a row; None is null."""
        if self.labels is not None:
            return self.from_codes(np.array([NO_VALUE if value is None else value for value in values], dtype=np.int8))
        if pa.types.is_map(self.type):
            none_at_all = all(value is None for value in values)
            return pa.nulls(len(values), self.type) if none_at_all else pa.array(values, self.type)
        if not pa.types.is_list(self.type) and None not in values:
            return self._array(np.array(values), self.type, None)
        none = np.array([value is None for value in values], dtype=bool)
        if pa.types.is_list(self.type):
            parts = [np.asarray([] if value is None else value, dtype=np.int64) for value in values]
            return self._lists(
                np.array([part.size for part in parts], dtype=np.int64),
                np.concatenate([[], *parts]).astype(np.int64),
                none,
            )
        numbers = np.array([0 if value is None else value for value in values])
        return self._array(numbers, self.type, none if none.any() else None)

    def _lists(self, sizes: IntArray, values: NDArray[Any], none: NDArray[np.bool_] | None) -> pa.Array:
        """Return an Arrow array of lists, whose sizes and values are given one after another."""
        ends = pa.py_buffer(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
        valid = None if none is None else pa.py_buffer(np.packbits(~none, bitorder="little"))
        children = [self._array(values, self.type.value_type, None)]
        return pa.Array.from_buffers(self.type, sizes.size, [valid, ends], children=children)

    def _array(self, values: NDArray[Any], kind: pa.DataType, none: NDArray[np.bool_] | None) -> pa.Array:
        """Return an Arrow array of numbers; `pyarrow.array` imports pandas, where that is installed, for any array."""
        numbers = np.ascontiguousarray(values, dtype=kind.to_pandas_dtype())
        if numbers.dtype != values.dtype and not np.array_equal(numbers, values, equal_nan=values.dtype.kind == "f"):
            wrong = values[numbers != values][0]
            raise RunError(f"history: the column {self.name} is given {wrong}, which {kind} cannot hold")
        valid = None if none is None else pa.py_buffer(np.packbits(~none, bitorder="little"))
        return pa.Array.from_buffers(kind, numbers.size, [valid, pa.py_buffer(numbers)])

    @property
    def no_value(self) -> float:
        """Number that stands for no value in an array."""
        return np.nan if pa.types.is_floating(self.type) else NO_VALUE

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the arrays in which numbers and codes are kept before they are stored; whole numbers take 8 bytes."""
        if self.labels is not None:
            return np.dtype(np.int8)
        return np.dtype(np.float64 if pa.types.is_floating(self.type) else np.int64)


def _texts(values: Sequence[str]) -> pa.Array:
    """Return an Arrow array of strings, without pandas as in `Column`."""
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))


@dataclass(frozen=True)
class TableSchema:
    """One table of a run.

    Attributes
    ----------
    name : of the table, and of its file in a run folder
    row : what a row stands for
    columns : in their order
    optional : whether a run without such rows has no such table
    """

    name: str
    row: str
    columns: tuple[Column, ...]
    optional: bool = field(default=False, kw_only=True)

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema."""
        return pa.schema([(column.name, column.type) for column in self.columns])

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(column.name for column in self.columns)

    def check(self, given: Iterable[str]) -> list[Column]:
        """Return the columns that are not given and may be null.

        Raises
        ------
        RunError
            If a column is given that the table does not have, or one is missing that always has a value.
        """
        names = frozenset(given)
        if names == self._names:
            return []
        absent = [column for column in self.columns if column.name not in names]
        problems = {
            "has no column": sorted(names - self._names),
            "needs a value for": [column.name for column in absent if not column.null],
        }
        wrong = " and ".join(f"{problem} {', '.join(which)}" for problem, which in problems.items() if which)
        if wrong:
            raise RunError(f"history: the table {self.name} {wrong}; its columns: {', '.join(self.arrow.names)}")
        return absent

    def from_rows(self, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        """Return the table of rows that `check` has let through; what a row does not name is null."""
        if not rows:
            return pa.Table.from_batches([], self.arrow)
        arrays = [column.from_values([row.get(column.name) for row in rows]) for column in self.columns]
        return pa.Table.from_arrays(arrays, schema=self.arrow)

    def from_columns(self, columns: Mapping[str, NDArray[Any]]) -> pa.Table:
        """Return the table of columns, all of one shape (n,), labels as their codes."""
        arrays = [column.from_codes(columns[column.name]) for column in self.columns]
        return pa.Table.from_arrays(arrays, schema=self.arrow)

    def read(self, table: pa.Table, version: int) -> pa.Table:
        """Return a table of a run folder in the present format; columns that are newer than its format are null.

        Parameters
        ----------
        table : as it was read
        version : format of the folder

        Raises
        ------
        ValueError, pyarrow.ArrowException
            If the table lacks a column of its own format, or has another one.
        """
        if unknown := sorted(set(table.column_names) - self._names):
            raise ValueError(f"there is no column {', '.join(unknown)}")
        for column in self.columns:
            if column.name not in table.column_names and column.since > version:
                table = table.append_column(column.name, pa.nulls(table.num_rows, column.type))
        if lacking := [name for name in self.arrow.names if name not in table.column_names]:
            raise ValueError(f"it lacks the column {', '.join(lacking)}")
        return table.select(self.arrow.names).cast(self.arrow)


_NO_EDGES: Final = "without edge servers"
_CLIENT: Final = Column("client", pa.int32(), "index of the client")
_BITS: Final = (
    Column("downlink_bits", pa.float64(), "received; in part where the downlink was cut", "bit"),
    Column("uplink_bits", pa.float64(), "sent; in part where the uplink was cut", "bit"),
)
_START: Final = Column("start_s", pa.float64(), "simulated time of the beginning", "s")
_END: Final = Column("end_s", pa.float64(), "simulated time of the end", "s")
_EDGE: Final = Column("edge", pa.int32(), "index of the edge server", null=_NO_EDGES)
_DOWNLINK: Final = Column("downlink_s", pa.float64(), "time on the downlink, without queueing", "s")
_COMPUTE: Final = Column("compute_s", pa.float64(), "time of computing", "s")
_UPLINK: Final = Column("uplink_s", pa.float64(), "time on the uplink, without queueing", "s")
_QUEUE: Final = Column("queue_s", pa.float64(), "waiting time for a medium to be free", "s")
_VERSION: Final = Column("start_version", pa.int32(), "version of the model that it started from")
_STALENESS: Final = Column("staleness", pa.int32(), "newer versions of the model when it was used", null="not used")
_SPENT: Final = (_START, _DOWNLINK, _COMPUTE, _UPLINK, _QUEUE, _END, *_BITS)
_ENDED: Final = (
    Column("outcome", _LABEL, "how it ended", labels=Outcome),
    Column("cut_in", _LABEL, "phase in which it was cut", labels=Phase, null="not cut: the message arrived"),
)
_ENERGY: Final = Column("energy_j", pa.float64(), "drawn from the battery; 0 without batteries", "J")

PARTICIPATIONS: Final = TableSchema(
    "participations",
    "one client in one round",
    (
        Column("round", pa.int32(), "round in which it started; with edge servers, that of its edge server"),
        _EDGE,
        _CLIENT,
        Column("draws", pa.int32(), "how often the selector drew the client"),
        Column("weight", pa.float64(), "share of the update in the model that it went into; 0 if not used"),
        Column("work", pa.float64(), "share of the local work that was done"),
        *_SPENT,
        *_ENDED,
        Column("fate", _LABEL, "whether its time and bits served", labels=Fate),
        _VERSION,
        Column("served_round", pa.int32(), "round whose model the update went into", null="not used"),
        _STALENESS,
        Column("epsilon", pa.float64(), "privacy charged for the upload; 0 without privacy", "epsilon"),
        _ENERGY,
    ),
)
_WITH_NOISE: Final = 6
"""The first format in which rounds have the ratio of noise to signal."""
_ROUND: Final = (
    Column("round", pa.int32(), "number of the round, from 1"),
    _START,
    _END,
    Column("duration_s", pa.float64(), "end_s - start_s", "s"),
    Column("candidates", pa.int32(), "clients that could be selected"),
    Column("selected", pa.int32(), "participations that started"),
    Column("delivered", pa.int32(), "participations that ended in time"),
    Column("late", pa.int32(), "participations that were late"),
    Column("dropped", pa.int32(), "participations whose client was lost"),
    Column("stale_used", pa.int32(), "stale updates that were used"),
    Column("model_version", pa.int32(), "version of the model at the end"),
    Column("largest_leakage", pa.float64(), "largest privacy spent by a client so far", "epsilon"),
    Column(
        "noise_to_signal",
        pa.float64(),
        "expected energy of the privacy noise in the updates used, over that of the clipped updates",
        null="not asked for by `results.noise_to_signal`, no update used, not known, or a budget is spent",
        since=_WITH_NOISE,
    ),
    Column("ended_by", _LABEL, "what ended the round", labels=RoundEnd),
)
_WITH_METRICS: Final = 7
"""The first format in which evaluations have further metrics."""
ROUNDS: Final = TableSchema("rounds", "one round; with edge servers, one of the cloud", _ROUND)
EVALUATIONS: Final = TableSchema(
    "evaluations",
    "one evaluation of the global model on the test set",
    (
        Column("round", pa.int32(), "round after which it was made"),
        Column("time_s", pa.float64(), "simulated time", "s"),
        Column("model_version", pa.int32(), "version of the model"),
        Column(
            "accuracy",
            pa.float64(),
            "share of the test samples classified correctly",
            null="the task has no such metric",
        ),
        Column("loss", pa.float64(), "mean loss over the test samples"),
        Column(
            "metrics",
            pa.map_(pa.string(), pa.float64()),
            "all metrics of the task by name",
            null="the task has none but accuracy",
            since=_WITH_METRICS,
        ),
    ),
)
EDGE_ROUNDS: Final = TableSchema(
    "edge_rounds",
    "one round of an edge server",
    (Column("edge", pa.int32(), "index of the edge server"), *_ROUND),
    optional=True,
)
EDGE_PARTICIPATIONS: Final = TableSchema(
    "edge_participations",
    "one cycle of an edge server: model from the cloud, rounds, model to the cloud",
    (
        Column("round", pa.int32(), "round of the cloud that received the model", null="the run ended before"),
        Column("edge", pa.int32(), "index of the edge server"),
        Column("edge_rounds", pa.int32(), "rounds that the edge server ran"),
        _START,
        Column("downlink_s", pa.float64(), "time of the model from the cloud", "s"),
        Column("uplink_s", pa.float64(), "time of the model to the cloud", "s"),
        _END,
        *_BITS,
        _VERSION,
        Column("staleness", pa.int32(), "merges of the cloud since the model was fetched", null="no model arrived"),
        Column("weight", pa.float64(), "share of the edge server's model in the cloud's"),
    ),
    optional=True,
)
PROBES: Final = TableSchema(
    "probes",
    "one client asked a question before a selection",
    (
        Column("round", pa.int32(), "round of the selection"),
        _EDGE,
        _CLIENT,
        *_SPENT,
        *_ENDED,
        Column("epsilon", pa.float64(), "privacy charged for the answer; 0 if it is not private", "epsilon", since=5),
        _ENERGY,
    ),
    optional=True,
)
ACCOUNTS: Final = TableSchema(
    "accounts",
    "one client of an audited run: its time by use, probes included, which adds up to the length of the run",
    (
        _CLIENT,
        Column("idle_s", pa.float64(), "time without a participation", "s"),
        _DOWNLINK,
        _COMPUTE,
        _QUEUE,
        _UPLINK,
        Column("cut_off_s", pa.float64(), "time in phases that were cut", "s"),
    ),
    optional=True,
)
_NO_RADIO: Final = "no radio"
_NO_PLACES: Final = "places have no effect"
_NOTHING_LEARNED: Final = "nothing is learned"
_LABELLED: Final = 5
"""The first format in which the table of clients has their labels and their operations per second."""
CLIENTS: Final = TableSchema(
    "clients",
    "one client, as it is before the first round",
    (
        _CLIENT,
        Column("x_m", pa.float64(), "place", "m", null=_NO_PLACES),
        Column("y_m", pa.float64(), "place", "m", null=_NO_PLACES),
        Column("site", pa.int32(), "index of the site or server at which its transfers end", null="no sites"),
        Column("distance_m", pa.float64(), "distance to its site or base station", "m", null=_NO_PLACES),
        Column("downlink_snr_db", pa.float64(), "mean over fading, interference included", "dB", null=_NO_RADIO),
        Column("uplink_snr_db", pa.float64(), "mean over fading, interference included", "dB", null=_NO_RADIO),
        Column("downlink_bps", pa.float64(), "mean rate of a client alone on the medium", "bit/s", null="no rates"),
        Column("uplink_bps", pa.float64(), "mean rate of a client alone on the medium", "bit/s", null="no rates"),
        Column("samples_per_s", pa.float64(), "samples of a pass over their mean time", "1/s", null="no time"),
        Column(
            "flops_per_s",
            pa.float64(),
            "operations of a pass over their mean time",
            "1/s",
            null="the law of times counts no operations",
            since=_LABELLED,
        ),
        Column("samples", pa.int32(), "training samples", null="not known"),
        Column("classes", pa.int32(), "different labels in its training data", null=_NOTHING_LEARNED),
        Column(
            "labels",
            pa.list_(pa.int32()),
            "training samples of each label, from label 0 on",
            null=_NOTHING_LEARNED,
            since=_LABELLED,
        ),
        Column("capacity_j", pa.float64(), "energy of its full battery", "J", null="no batteries"),
        Column("charge_j", pa.float64(), "energy in its battery at time 0", "J", null="no batteries"),
    ),
    optional=True,
)
TABLES: Final = {
    table.name: table
    for table in (PARTICIPATIONS, ROUNDS, EVALUATIONS, EDGE_ROUNDS, EDGE_PARTICIPATIONS, PROBES, ACCOUNTS, CLIENTS)
}
AT_THE_END: Final = (ACCOUNTS.name, CLIENTS.name)
"""Tables that are made as a whole, and written when the run has ended."""
STREAMED: Final = 3
"""The first format in which the tables of an unfinished run are streams of record batches."""
SEALED: Final = 4
"""The first format whose state has checksums, and a list of the files that the run wrote."""
FORMAT_VERSION: Final = max(SEALED, *(column.since for table in TABLES.values() for column in table.columns))
"""Format of the run folders that are written: that of the newest column, or of the checksums if that is later."""


def columns_page() -> str:
    """Return all tables and their columns in Markdown, as the page of the run folder shows them."""
    lines = []
    for table in TABLES.values():
        lines += [f"**`{table.name}`**{' (if there are any)' * table.optional}: {table.row}", ""]
        lines += ["| column | type | unit | meaning | null |", "|---|---|---|---|---|"]
        for column in table.columns:
            kind = "label" if column.labels is not None else str(column.type)
            meaning = column.doc
            if column.labels is not None:
                meaning += ": " + ", ".join(f"`{label}`" for label in column.labels.labels())
            lines.append(f"| `{column.name}` | {kind} | {column.unit} | {meaning} | {column.null} |")
        lines.append("")
    return "\n".join(lines)
