"""A division that a file states."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import IntArray
from fedsim.errors import DataError
from fedsim.inputs.paths import InputPath
from fedsim.registry import Component
from fedsim.streams import Streams
from fedsim.traces import read_columns

_NONE: Final = -1


class FilePartition(Component):
    """The client of each training sample stands in a table: CSV with a header, Parquet or NPZ; nothing is unpickled.

    The table has a column ``client`` of whole numbers, -1 for a sample of no client. With a column ``sample``, each
    row is about the sample of that number, counted from 0 in the order of the data set; a sample without a row belongs
    to no client. Otherwise row i is about sample i, and there is one row for each training sample. Other columns are
    ignored.

    Attributes
    ----------
    path : str
        The file.
    """

    path: InputPath

    def assign(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
        columns = read_columns(self.path)
        owner = self._whole(columns, "client", _NONE, clients - 1)
        sample = np.arange(labels.size)
        if "sample" in columns:
            sample = self._whole(columns, "sample", 0, labels.size - 1)
            if np.unique(sample).size < sample.size:
                twice = int(np.flatnonzero(np.bincount(sample) > 1)[0])
                raise DataError(f"learning.split: {self.path}: sample {twice} has two rows; allowed: at most one")
            if owner.size != sample.size:
                raise DataError(
                    f"learning.split: {self.path}: client has {owner.size} rows and sample {sample.size}; allowed: "
                    "as many"
                )
        elif owner.size != sample.size:
            raise DataError(
                f"learning.split: {self.path} has {owner.size} rows; there must be one for each of the {labels.size} "
                "training samples, or a column 'sample'"
            )
        of = np.full(labels.size, _NONE, dtype=np.int64)
        of[sample] = owner
        order = np.argsort(of, kind="stable")
        return np.split(order, np.searchsorted(of[order], np.arange(clients + 1)))[1:-1]

    def _whole(self, columns: dict[str, NDArray[Any]], name: str, least: int, most: int) -> IntArray:
        """Return a column of whole numbers within bounds."""
        where = f"learning.split: {self.path}"
        if name not in columns:
            raise DataError(f"{where} has no column {name!r}; its columns: {', '.join(columns) or 'none'}")
        column = columns[name]
        if column.dtype.kind not in "iu" or column.ndim != 1:
            at = _first_wrong(column) if column.ndim == 1 else None
            found = f"{name} holds {column.dtype}" if at is None else f"{name}, row {at[0] + 1}: {at[1]}"
            raise DataError(f"{where}: {found}; it must hold whole numbers, one in each row")
        wrong = np.flatnonzero((column < least) | (column > most))
        if wrong.size:
            row = int(wrong[0])
            raise DataError(
                f"{where}: {name}, row {row + 1}: {column[row].item()} is not allowed; allowed: {least} to {most}"
            )
        return column.astype(np.int64)


def _first_wrong(column: NDArray[Any]) -> tuple[int, str] | None:
    """Return the first row that has no whole number, and its content in words."""
    for row, value in enumerate(column.tolist()):
        if value is None or value != value:  # noqa: PLR0124 - NaN alone
            return row, "there is no value"
        if isinstance(value, str):
            whole = value.strip().removeprefix("-").isdecimal()
        else:
            whole = isinstance(value, float) and value.is_integer()
        if not whole:
            return row, f"{value!r} is not allowed"
    return None
