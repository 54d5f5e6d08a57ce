"""Pickles of numbers, texts and containers: none that names code is read, and nothing in one is run."""

import io
import pickle
import pickletools
from typing import Any, Final, Never

from fedsim.errors import DataError

MAX_INSTRUCTIONS: Final = 1 << 24
MAX_DEPTH: Final = 100
_MARK: Final = -1


def unpickled(content: bytes, where: str, max_instructions: int = MAX_INSTRUCTIONS) -> Any:
    """Return the content of a pickle of lists, tuples, dictionaries, numbers and strings."""
    try:
        _check_size(content, max_instructions)
        return _Plain(io.BytesIO(content)).load()
    except DataError as error:
        raise DataError(f"{where}: is refused: {error}") from None
    except Exception as error:  # whatever pickle makes of a damaged file
        raise DataError(f"{where}: is no pickle of numbers and containers: {error}") from error


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
        if name.endswith("GLOBAL") or name == "INST":
            return  # Here the reader stops.
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
