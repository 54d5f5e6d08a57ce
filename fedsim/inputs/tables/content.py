"""Columns of a file by name: CSV in its dialects, Parquet, NPZ, each also packed by gzip."""

import csv
import io
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fedsim.errors import DataError
from fedsim.inputs.archives import arrays_of_npz, unpacked
from fedsim.inputs.arrow import Column, Columns, as_texts, known_of, numbers_of
from fedsim.inputs.files import shortened
from fedsim.inputs.pickles import unpickled
from fedsim.inputs.tables.header import NUMBER
from fedsim.inputs.tables.phones import of_pickle
from fedsim.inputs.tables.published import CARS, HEAD, LAST_STEP, of_columns, published
from fedsim.lazy import without_collections

TABLES: Final = (".csv", ".tsv", ".parquet", ".npz", ".json")
"""Suffixes of tables, in any case; ``.gz`` may follow."""
_OTHERS: Final = (".pt", ".npy")
_PICKLE: Final = re.compile(rb"\A(\x80|}q|\(dp?\d)")
"""How a pickle of a dictionary begins."""
MAX_VALUES: Final = 1 << 27
"""Rows times columns of the largest Parquet table that is read."""
_BINARY: Final = (b"PK\x03\x04", b"PAR1", b"\x89HDF", b"SQLite")
_MARKS: Final = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""Byte-order marks of encodings other than UTF-8."""
_COMMENTS: Final = re.compile(rb"(?:[ \t]*#[^\r\n]*[\r\n]+)+")
_BLANK: Final = re.compile(rb"(?m)^[ \t]+\r?$")
_TRIED: Final = 100
_UNEQUAL: Final = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)


def suffix_of(path: str | Path) -> str:
    return Path(str(path).lower().removesuffix(".gz")).suffix


def is_car_data(path: str | Path, where: str) -> bool:
    """Return whether a file, if there is one, holds floating car data of SUMO."""
    with suppress(DataError):
        return CARS.match(unpacked(path)[:HEAD]) is not None or LAST_STEP in read_content(path, where)[0]
    return False


def read_content(path: str | Path, where: str, contact_with: str | None = None) -> tuple[Columns, bool]:
    """Return the columns of a table, and whether a comma may stand before decimals; those of CSV are texts."""
    suffix = suffix_of(path)
    if suffix in _OTHERS:
        raise DataError(f"{where}: is no table; allowed: {', '.join(TABLES)} and other text, also with .gz behind")
    content = unpacked(path, where=where)
    try:
        if suffix == ".npz":
            return dict(arrays_of_npz(content, where)), False
        if suffix == ".parquet":
            return of_columns(_parquet(content), where), False
        if suffix in (".pkl", ".pickle") or (not suffix and _PICKLE.match(content)):
            return dict(of_pickle(unpickled(content, where))), False
        text = content if CARS.match(content[:HEAD]) else utf8(content)
        with without_collections():
            found = published(text, contact_with, where)
        if found is not None:
            return found, False
        columns, decimal_comma = _csv(text, "\t" if suffix == ".tsv" else "")
        return of_columns(columns, where), decimal_comma
    except DataError as error:
        raise error if str(error).startswith(where) else DataError(f"{where}: {error}") from None
    except Exception as error:  # whatever Arrow makes of a damaged file
        raise DataError(f"{where}: cannot be read: {str(error) or type(error).__name__}") from error


def _parquet(content: bytes) -> dict[str, pa.ChunkedArray]:
    from pyarrow import parquet

    with parquet.ParquetFile(pa.BufferReader(content), page_checksum_verification=True) as file:
        values = file.metadata.num_rows * file.metadata.num_columns
        if values > MAX_VALUES:
            raise DataError(f"is refused: it claims {values} values; allowed: at most {MAX_VALUES}")
        table = file.read()
    return dict(zip(_apart(table.column_names), table.columns, strict=True))


def _csv(content: bytes, delimiter: str) -> tuple[dict[str, pa.ChunkedArray], bool]:
    from pyarrow import csv as arrow

    content = _without_comments(content).rstrip(b"\r\n") + b"\n"
    header = _first_line(content).decode()
    if not header.strip():
        raise DataError("cannot be read: it is empty; a table begins with the names of its columns")
    chosen = delimiter or max(",;\t|", key=header.count)
    first = next(csv.reader(io.StringIO(header), delimiter=chosen))
    if all(re.match(NUMBER, cell.strip()) for cell in first):
        raise DataError(f"its first line is {shortened(header)}; allowed: the names of its columns, then rows")
    names = _apart(first)
    if content.count(b'"') % 2:
        raise DataError('cannot be read: a " begins a text that does not end; allowed: pairs of them')
    try:
        table = arrow.read_csv(
            pa.BufferReader(content),
            arrow.ReadOptions(use_threads=False, column_names=names, skip_rows=1, block_size=1 << 24),
            # Of a table of one column, an empty line is a cell without a value.
            arrow.ParseOptions(delimiter=chosen, newlines_in_values=b'"' in content, ignore_empty_lines=len(names) > 1),
            arrow.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
    except pa.ArrowInvalid as error:
        if str(error).startswith("Empty CSV"):
            return {name: pa.chunked_array([], pa.string()) for name in names}, False
        if (found := _UNEQUAL.search(str(error))) is None:
            raise
        row, wanted, cells, text = found.groups()
        raise DataError(
            f"row {int(row) - 1} has {cells} cells and the header has {wanted}: {shortened(text.strip())}; allowed: "
            "as many in each row"
        ) from None
    return dict(zip(names, table.columns, strict=True)), chosen == ";"


def _without_comments(content: bytes) -> bytes:
    """Return text from its header on: the first line, also behind a #, after comments and Excel's ``sep=;``."""
    content = re.sub(rb"\A(?i:\"?sep=.\"?)[\r\n]+", b"", content.lstrip(b"\r\n"))
    if b"\n " in content or b"\n\t" in content:
        content = _BLANK.sub(b"", content)
    if (comments := _COMMENTS.match(content)) is None:
        return content
    rest = content[comments.end() :]
    last = comments[0].splitlines()[-1].strip().lstrip(b"# \t")
    row = _first_line(rest)
    cells = [[line.count(mark) for mark in b",;\t|"] for line in (last, row)]
    is_header = cells[0] == cells[1] and (any(cells[0]) or re.match(NUMBER, row.decode().strip()))
    return last + b"\n" + rest if is_header else rest


def _first_line(content: bytes) -> bytes:
    return re.split(rb"\r\n|\n|\r", content, maxsplit=1)[0]


def utf8(content: bytes) -> bytes:
    """Return text in UTF-8 without a byte-order mark, refusing other encodings without one."""
    if content.startswith(_BINARY):
        raise DataError("is no text, whatever its suffix says; allowed: CSV, .parquet, .npz")
    for mark, encoding in _MARKS.items():
        if content.startswith(mark):
            try:
                return content.decode(encoding).encode()
            except UnicodeDecodeError:
                raise DataError(f"cannot be read: it begins as {encoding.upper()} text and is none") from None
    if b"\0" in content[:4096]:
        raise DataError("is no UTF-8 text: it has null bytes; allowed: CSV in UTF-8, .parquet, .npz")
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"cannot be read: line {line} is not UTF-8 text; allowed: CSV in UTF-8, .parquet, .npz"
        ) from None
    return content


def _apart(names: list[str]) -> list[str]:
    """Return the names of columns without blanks around, refusing equal ones; those without a name get a number."""
    stripped = [name.strip() or f"column {number}" for number, name in enumerate(names, 1)]
    for number, name in enumerate(stripped):
        if name in stripped[:number]:
            raise DataError(f"it has two columns {name!r}; allowed: one of each name")
    return stripped


def as_numbers(values: Column, *, decimal_comma: bool = False) -> NDArray[Any] | pa.StringArray:
    """Return float64 with NaN for nothing, `datetime64` in us, or texts without blanks around and null for nothing.

    Texts that are numbers, all of them, are read as these.
    """
    import pyarrow.compute as pc

    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise DataError(f"it has the shape {values.shape}; allowed: one value a row")
        if values.dtype.kind in "iufb":
            return values.astype(np.float64)
        values = as_texts(values)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = values.type
    if pa.types.is_timestamp(kind):
        since = numbers_of(values.cast(pa.timestamp("us"), safe=False).cast(pa.int64()))
        known = known_of(values)
        return np.where(known, np.where(known, since, 0).astype("datetime64[us]"), np.datetime64("NaT", "us"))
    if pa.types.is_duration(kind):
        raise DataError("it holds durations; allowed: numbers, with their unit in the name of the column")
    if pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(numbers_of(values.cast(pa.float64(), safe=False)), dtype=np.float64)
    texts = as_texts(values)
    for numbers in (texts, pc.replace_substring(texts, ",", ".")) if decimal_comma else (texts,):
        with suppress(pa.ArrowInvalid):
            # Arrow goes on after a cell that is no number, slowly.
            pc.cast(numbers[:_TRIED], pa.float64())
            return np.asarray(numbers_of(pc.cast(numbers, pa.float64())))
    return texts
