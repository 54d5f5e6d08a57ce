"""Readers of pickles that name no code, and of tables of the speeds of devices."""

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any, Final, Literal, Never

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import DataError
from fedsim.inputs.bounds import NUMBER
from fedsim.inputs.files import MAX_BYTES, read_bytes
from fedsim.inputs.tables import Table, owned
from fedsim.inputs.tables.content import suffix_of
from fedsim.inputs.tables.header import UNITS
from fedsim.streams import Streams

PICKLES: Final = (".pkl", ".pickle", "")
MAX_INSTRUCTIONS: Final = 1 << 24
MAX_DEPTH: Final = 100
_MARK: Final = -1
Assignment = Literal["random", "sequential"]
Mapped = Assignment | Literal["id"] | None
"""How clients get entries: each that of its id, or one by the law; None for ids where a table has ids of clients."""
_NAMES: Final = ("computation", "communication")
_UNITS: Final = (UNITS["ms"], UNITS["kbit/s"])


def read_pickle(path: str | Path, *, max_bytes: int = MAX_BYTES, max_instructions: int = MAX_INSTRUCTIONS) -> Any:
    """Return the content of a pickle of lists, tuples, dictionaries, numbers and strings; nothing in it is run."""
    content = read_bytes(path, max_bytes, DataError)
    try:
        _check_size(content, max_instructions)
        return _Plain(io.BytesIO(content)).load()
    except DataError as error:
        raise DataError(f"{path}: is refused: {error}") from None
    except (
        *(pickle.UnpicklingError, AttributeError, EOFError, LookupError, TypeError, ValueError),
        *(OverflowError, MemoryError),
    ) as error:
        raise DataError(f"{path}: is no pickle of numbers and containers: {error}") from None


class _Plain(pickle.Unpickler):
    """A reader of pickles without code: FedScale's layouts are builtin containers, numbers and texts, and no arrays."""

    def find_class(self, module: str, name: str, /) -> Never:
        raise DataError(f"it names {module}.{name}; allowed: lists, tuples and dictionaries of numbers and strings")


def _check_size(content: bytes, max_instructions: int) -> None:
    """Refuse a pickle whose content is far larger than its file.

    A container that occurs twice may stand for 10^30 numbers in 300 bytes, a place of the memory for 64 GiB, and the
    hash of a deeply nested tuple takes more than the stack of a process.
    """
    is_text: dict[object, bool] = {}
    depths: list[int] = []
    before = ""
    for count, (instruction, argument, _) in enumerate(pickletools.genops(content)):
        name = instruction.name
        if _nested(depths, instruction) > MAX_DEPTH:
            raise DataError(f"its containers are nested deeper than {MAX_DEPTH}")
        if count >= max_instructions:
            raise DataError(f"it has more than {max_instructions} instructions")
        if name == "MEMOIZE" or name.endswith("PUT"):
            place = len(is_text) if argument is None else argument
            if place > count:
                raise DataError(
                    f"it has place {place} of its memory after {count} instructions; allowed: at most {count}"
                )
            is_text[place] = "STRING" in before or "UNICODE" in before
        elif name == "DUP" or (name.endswith("GET") and not is_text.get(argument, True)):
            raise DataError("a container occurs in two places; allowed: each list, tuple and dictionary once")
        before = name


def _nested(depths: list[int], instruction: pickletools.OpcodeInfo) -> int:
    """Follow an instruction on the stack of a pickle, given as the depth of each object; return that of its result."""
    takes, gives = instruction.stack_before, instruction.stack_after
    below = len(takes)
    deepest = 0
    if pickletools.markobject in takes:
        below = takes.index(pickletools.markobject)
        while (depth := depths.pop()) != _MARK:
            deepest = max(deepest, depth)
    if below:
        deepest = max(deepest, *depths[-below:])
        del depths[-below:]
    result = _MARK if instruction.name == "MARK" else deepest + 1 if takes else 0
    depths.extend([result] * len(gives))
    return result


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
    table = _capacities(path, field)
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


def _capacities(path: str | Path, field: str) -> Table:
    if suffix_of(path) not in PICKLES:
        return Table.read(path, field)
    found = read_pickle(path)
    rows = list(found.values()) if isinstance(found, dict) else []
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path}: a capacity trace is a dictionary of devices with {' and '.join(_NAMES)}")
    try:
        columns = {name: np.asarray([row[name] for row in rows], dtype=np.float64) for name in _NAMES}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{path}: does not hold numbers in columns {' and '.join(_NAMES)}: {error}") from None
    return Table(columns, f"{field}: {path}")
