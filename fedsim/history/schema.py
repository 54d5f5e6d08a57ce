"""The columns of the tables of a run, and how they are filled."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fedsim.history.outcomes import PHASES, Fate, Outcome, RoundEnd

_LABEL: Final = pa.dictionary(pa.int8(), pa.string())
PARTICIPATIONS: Final = pa.schema(
    [
        ("round", pa.int32()),
        ("edge", pa.int32()),
        ("client", pa.int32()),
        ("draws", pa.int32()),
        ("weight", pa.float64()),
        ("work", pa.float64()),
        ("start_s", pa.float64()),
        ("downlink_s", pa.float64()),
        ("compute_s", pa.float64()),
        ("uplink_s", pa.float64()),
        ("queue_s", pa.float64()),
        ("end_s", pa.float64()),
        ("downlink_bits", pa.float64()),
        ("uplink_bits", pa.float64()),
        ("outcome", _LABEL),
        ("cut_in", _LABEL),
        ("fate", _LABEL),
        ("start_version", pa.int32()),
        ("served_round", pa.int32()),
        ("staleness", pa.int32()),
        ("epsilon", pa.float64()),
        ("energy_j", pa.float64()),
    ]
)
ROUNDS: Final = pa.schema(
    [
        ("round", pa.int32()),
        ("start_s", pa.float64()),
        ("end_s", pa.float64()),
        ("duration_s", pa.float64()),
        ("candidates", pa.int32()),
        ("selected", pa.int32()),
        ("delivered", pa.int32()),
        ("late", pa.int32()),
        ("dropped", pa.int32()),
        ("stale_used", pa.int32()),
        ("model_version", pa.int32()),
        ("largest_leakage", pa.float64()),
        ("ended_by", _LABEL),
    ]
)
EDGE_ROUNDS: Final = pa.schema([pa.field("edge", pa.int32()), *ROUNDS])
EDGE_PARTICIPATIONS: Final = pa.schema(
    [
        ("round", pa.int32()),
        ("edge", pa.int32()),
        ("edge_rounds", pa.int32()),
        ("start_s", pa.float64()),
        ("downlink_s", pa.float64()),
        ("uplink_s", pa.float64()),
        ("end_s", pa.float64()),
        ("downlink_bits", pa.float64()),
        ("uplink_bits", pa.float64()),
        ("start_version", pa.int32()),
        ("staleness", pa.int32()),
        ("weight", pa.float64()),
    ]
)
EVALUATIONS: Final = pa.schema(
    [
        ("round", pa.int32()),
        ("time_s", pa.float64()),
        ("model_version", pa.int32()),
        ("accuracy", pa.float64()),
        ("loss", pa.float64()),
    ]
)
_SPENT: Final = ("round", "edge", "client", "start_s", "downlink_s", "compute_s", "uplink_s", "queue_s", "end_s")
PROBES: Final = pa.schema(
    [PARTICIPATIONS.field(name) for name in (*_SPENT, "downlink_bits", "uplink_bits", "outcome", "cut_in", "energy_j")]
)
_LABELS: Final = {
    "outcome": [outcome.name.lower() for outcome in Outcome],
    "cut_in": [*PHASES],
    "fate": [fate.name.lower().replace("_", "-") for fate in Fate],
    "ended_by": [end.name.lower() for end in RoundEnd],
}
_NULL_BELOW_ZERO: Final = ("edge", "cut_in", "served_round", "staleness")
ACCOUNTS: Final = pa.schema(
    [
        ("client", pa.int32()),
        ("idle_s", pa.float64()),
        ("downlink_s", pa.float64()),
        ("compute_s", pa.float64()),
        ("queue_s", pa.float64()),
        ("uplink_s", pa.float64()),
        ("cut_off_s", pa.float64()),
    ]
)


def from_columns(parts: list[dict[str, NDArray[Any]]], schema: pa.Schema) -> pa.Table:
    """Return a table from pieces of its columns, labels as their codes."""
    if not parts:
        return schema.empty_table()
    columns = {name: np.concatenate([columns[name] for columns in parts]) for name in schema.names}
    return pa.Table.from_arrays([_array(columns[field.name], field) for field in schema], schema=schema)


def _array(values: NDArray[Any], field: pa.Field) -> pa.Array:
    """Return a column; codes become their labels, and negative numbers are null where they stand for none."""
    none = values < 0 if field.name in _NULL_BELOW_ZERO else None
    if field.name in _LABELS:
        return pa.DictionaryArray.from_arrays(pa.array(values, mask=none), pa.array(_LABELS[field.name]))
    return pa.array(values, field.type, mask=none)


def from_rows(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Return a table from its rows."""
    if not rows:
        return schema.empty_table()
    arrays = [
        _array(np.array(column, dtype=np.int8), field) if field.name in _LABELS else pa.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
