"""Tables of a run for other programs: as CSV and as data frames of pandas."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from fedsim.errors import RunError
from fedsim.history.tables import TableName, Tables
from fedsim.inputs.files import check_path
from fedsim.whole_files import replace_file


def flat(tables: Tables, table: TableName) -> pa.Table:
    """Return a table of a run in which each entry of a map or of a list has a column of its own.

    Metrics are ``metrics.macro-f1`` and the like, numbers of labels ``labels.0`` and so on; what a row does not have
    is null.

    Parameters
    ----------
    tables : of the run
    table : name of a table that this run has

    Raises
    ------
    RunError
        If this run has no such table.
    """
    columns: dict[str, Any] = {}
    for name, values in zip((found := tables.table(table)).column_names, found.columns, strict=True):
        if pa.types.is_map(values.type):
            maps = [dict(row or ()) for row in values.to_pylist()]
            keys = sorted({key for row in maps for key in row})
            columns |= {f"{name}.{key}": pa.array([row.get(key) for row in maps], pa.float64()) for key in keys}
        elif pa.types.is_list(values.type):
            rows = [row or () for row in values.to_pylist()]
            longest = max(map(len, rows), default=0)
            columns |= {f"{name}.{i}": [row[i] if i < len(row) else None for row in rows] for i in range(longest)}
        else:
            columns[name] = values.cast(pa.string()) if pa.types.is_dictionary(values.type) else values
    return pa.table(columns)


def write_csv(tables: Tables, table: TableName, out: str | Path) -> None:
    """Write a table of a run as CSV, with the columns of `flat`; texts are quoted, and null is empty.

    Parameters
    ----------
    tables : of the run
    table : name of a table that this run has
    out : file, which is replaced

    Raises
    ------
    RunError
        If this run has no such table, or the file cannot be written.
    """
    path, content = check_path(out, RunError), flat(tables, table)
    replace_file(path, lambda part: pyarrow.csv.write_csv(content, part))


def to_pandas(tables: Tables, table: TableName) -> Any:
    """Return a table of a run as a data frame of pandas, with the columns of `flat`.

    Parameters
    ----------
    tables : of the run
    table : name of a table that this run has

    Raises
    ------
    RunError
        If pandas is not installed, or this run has no such table.
    """
    try:
        import_module("pandas")
    except ModuleNotFoundError:
        raise RunError(
            "to_pandas: pandas is not installed; allowed: pip install 'fedsim-des[pandas]', or write_csv"
        ) from None
    return flat(tables, table).to_pandas()
