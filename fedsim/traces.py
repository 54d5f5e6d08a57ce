"""Readers of measured tables: CSV, Parquet, NPZ, and pickles by a restricted interpreter.

A pickle is a program, and loading one with `pickle.load` runs it. `read_pickle` instead interprets a short list
of instructions that can only make numbers, strings, lists, tuples and dictionaries. It looks up no class, calls
no function, and refuses every other instruction by name. The result is a tree: a container that occurs twice
is refused, so that a small file cannot stand for a huge or endless structure; and both the size of the file and
the number of instructions are bounded.
"""

import io
import pickletools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import DataError
from fedsim.inputs.archives import read_npz
from fedsim.inputs.bounds import NUMBER, check_column
from fedsim.inputs.files import MAX_BYTES, read_bytes
from fedsim.streams import Streams

PICKLES: Final = (".pkl", ".pickle", "")
MAX_INSTRUCTIONS: Final = 1 << 24
MAX_VALUES: Final = 1 << 27
"""Rows times columns of the largest Parquet table that is read."""
Assignment = Literal["random", "sequential"]

_IGNORED: Final = frozenset({"PROTO", "FRAME"})
_NUMBERS: Final = frozenset({"INT", "LONG", "LONG1", "LONG4", "BININT", "BININT1", "BININT2", "FLOAT", "BINFLOAT"})
_STRINGS: Final = frozenset({"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"})
_PUTS: Final = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_GETS: Final = frozenset({"GET", "BINGET", "LONG_BINGET"})
_MARK: Final = object()
_WORD_BITS: Final = 64


def read_pickle(path: str | Path, *, max_bytes: int = MAX_BYTES, max_instructions: int = MAX_INSTRUCTIONS) -> Any:
    """Return the content of a pickle of numbers, strings and containers, without running it.

    It takes about two microseconds per instruction: 10 s for the capacities of half a million devices, 17 s for
    the online intervals of 107,749 devices, the sizes of FedScale's two files.
    """
    content = read_bytes(path, max_bytes, DataError)
    reader = _Reader()
    try:
        for count, (instruction, argument, _) in enumerate(pickletools.genops(io.BytesIO(content))):
            if count >= max_instructions:
                raise DataError(f"it has more than {max_instructions} instructions")
            reader.do(instruction.name, argument)
        return reader.result()
    except DataError as error:
        raise DataError(f"{path}: is refused: {error}") from None
    except (ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
        raise DataError(f"{path}: is no pickle of numbers and containers: {error}") from None


class _Reader:
    """An interpreter with a stack and a memory, for the instructions that are harmless."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memory: dict[int, Any] = {}
        self._stopped = False
        push = self._stack.append
        self._actions: dict[str, Callable[[Any], None]] = {
            **dict.fromkeys(_IGNORED, lambda _: None),
            **dict.fromkeys(_NUMBERS, self._number),
            **dict.fromkeys(_STRINGS, push),
            **dict.fromkeys(_PUTS, self._put),
            **dict.fromkeys(_GETS, self._get),
            "NONE": lambda _: push(None),
            "NEWTRUE": lambda _: push(True),
            "NEWFALSE": lambda _: push(False),
            "MARK": lambda _: push(_MARK),
            "STOP": self._stop,
            "EMPTY_LIST": lambda _: push([]),
            "EMPTY_DICT": lambda _: push({}),
            "EMPTY_TUPLE": lambda _: push(()),
            "LIST": lambda _: push(self._since_mark()),
            "TUPLE": lambda _: push(tuple(self._since_mark())),
            "TUPLE1": lambda _: push(tuple(self._last(1))),
            "TUPLE2": lambda _: push(tuple(self._last(2))),
            "TUPLE3": lambda _: push(tuple(self._last(3))),
            "DICT": lambda _: push(_fill({}, self._since_mark())),
            "APPEND": lambda _: self._append(self._last(1)),
            "APPENDS": lambda _: self._append(self._since_mark()),
            "SETITEM": lambda _: self._set(self._last(2)),
            "SETITEMS": lambda _: self._set(self._since_mark()),
            "MEMOIZE": lambda _: self._put(len(self._memory)),
        }

    def do(self, name: str, argument: Any) -> None:
        """Carry out one instruction or refuse it."""
        action = self._actions.get(name)
        if action is None:
            raise DataError(
                f"the pickle instruction {name} can make more than numbers, strings and containers; "
                "allowed: lists, tuples and dictionaries of numbers and strings"
            )
        action(argument)

    def result(self) -> Any:
        """Return the one object that the whole program has built."""
        if not self._stopped:
            raise DataError("it ends before it is complete")
        return self._stack[0]

    def _stop(self, _argument: None) -> None:
        if len(self._stack) != 1 or self._stack[0] is _MARK:
            raise DataError("it does not end with one object")
        self._stopped = True

    def _number(self, value: Any) -> None:
        if value.__class__ is int and value.bit_length() > _WORD_BITS:
            raise DataError(f"a whole number of {value.bit_length()} bits is too large; allowed: at most {_WORD_BITS}")
        self._stack.append(value)

    def _last(self, count: int) -> list[Any]:
        """Take the last few objects from the stack."""
        items = self._stack[-count:]
        if len(items) < count or any(item is _MARK for item in items):
            raise DataError("it takes more from the stack than the stack holds")
        del self._stack[-count:]
        return items

    def _since_mark(self) -> list[Any]:
        place = len(self._stack) - 1
        while self._stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise DataError("it takes more from the stack than the stack holds")
        items = self._stack[place + 1 :]
        del self._stack[place:]
        return items

    def _append(self, items: Iterable[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not list:
            raise DataError("it appends to an object that is no list")
        target.extend(items)

    def _set(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not dict:
            raise DataError("it sets items of an object that is no dictionary")
        _fill(target, items)

    def _put(self, place: int) -> None:
        value = self._stack[-1]
        if value is _MARK:
            raise DataError("it remembers a mark")
        # Picklers memoize containers; only the fact is kept, because a container may not occur again.
        self._memory[place] = value if _is_simple(value) else _MARK

    def _get(self, place: int) -> None:
        value = self._memory[place]
        if value is _MARK:
            raise DataError("a container occurs in two places; allowed: each list, tuple and dictionary once")
        self._stack.append(value)


def _is_simple(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _fill(target: dict[Any, Any], items: list[Any]) -> dict[Any, Any]:
    if len(items) % 2:
        raise DataError("a dictionary has a key without a value")
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not _is_simple(key):
            raise DataError("a dictionary has a container for a key; allowed: numbers and strings")
        target[key] = value
    return target


def read_columns(path: str | Path) -> dict[str, NDArray[Any]]:
    """Return the columns of a table by name: ``.csv`` with a header line, ``.parquet`` or ``.npz``, in any letters."""
    kinds: Mapping[str, Callable[[str | Path], dict[str, NDArray[Any]]]]
    kinds = {".csv": _read_csv, ".parquet": _read_parquet, ".npz": read_npz}
    suffix = Path(path).suffix.lower()
    if suffix not in kinds:
        raise DataError(f"{path}: is no table; allowed: {', '.join(kinds)}")
    try:
        return kinds[suffix](path)
    except DataError:
        raise
    # Arrow's own errors are children of these.
    except (OSError, ValueError, KeyError, TypeError, IndexError, NotImplementedError, MemoryError) as error:
        raise DataError(f"{path}: cannot be read: {str(error) or type(error).__name__}") from None


def _read_csv(path: str | Path) -> dict[str, NDArray[Any]]:
    import pyarrow as pa
    from pyarrow import csv

    # From memory: a path with a colon would be taken for an address.
    return _columns_of(csv.read_csv(pa.BufferReader(read_bytes(path, MAX_BYTES, DataError))))


def _read_parquet(path: str | Path) -> dict[str, NDArray[Any]]:
    import pyarrow as pa
    from pyarrow import parquet

    content = pa.BufferReader(read_bytes(path, MAX_BYTES, DataError))
    with parquet.ParquetFile(content, page_checksum_verification=True) as file:
        values = file.metadata.num_rows * file.metadata.num_columns
        if values > MAX_VALUES:
            raise DataError(f"{path}: is refused: it claims {values} values; allowed: at most {MAX_VALUES}")
        return _columns_of(file.read())


def _columns_of(table: Any) -> dict[str, NDArray[Any]]:
    import pyarrow as pa

    found: dict[str, NDArray[Any]] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        # The codes of a dictionary have none for null, and NumPy would read the last label.
        if name in found:
            raise ValueError(f"it has two columns {name!r}; allowed: one of each name")
        labels = pa.types.is_dictionary(column.type)
        found[name] = (column.cast(column.type.value_type) if labels else column).to_numpy()
    return found


def entries_of(clients: int, entries: int, mapping: Assignment, name: str, streams: Streams) -> IntArray:
    """Return the entry of a trace that each of K clients gets, shape (K,)."""
    client = np.arange(clients, dtype=np.int64)
    if mapping == "sequential":
        return client % entries
    return np.asarray(streams.uniform(name, client) * entries, dtype=np.int64)


def read_capacities(path: str | Path) -> tuple[FloatArray, FloatArray]:
    """Return compute times in ms per sample and bandwidths in kbit/s of the n devices of a file, both of shape (n,)."""
    names = ("computation", "communication")
    if Path(path).suffix in PICKLES:
        found = read_pickle(path)
        rows = list(found.values()) if isinstance(found, dict) else []
        if not rows or not all(isinstance(row, dict) for row in rows):
            raise DataError(f"{path}: a capacity trace is a dictionary of devices with {' and '.join(names)}")
        columns: Mapping[str, Any] = {name: [row.get(name) for row in rows] for name in names}
    else:
        columns = read_columns(path)
    try:
        compute, bandwidth = (np.asarray(columns[name], dtype=np.float64) for name in names)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: does not hold numbers in columns {' and '.join(names)}: {error}") from None
    usable = np.isfinite(compute) & (compute >= 0) & np.isfinite(bandwidth) & (bandwidth >= 0)
    if compute.shape != bandwidth.shape or not compute.size or not usable.all():
        raise DataError(f"{path}: every device needs a {' and a '.join(names)} of at least 0")
    for values, name in ((compute, "computation"), (bandwidth, "communication")):
        check_column(values, name, NUMBER, str(path), DataError)
    return compute, bandwidth
