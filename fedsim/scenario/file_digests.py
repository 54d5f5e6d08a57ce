"""Digests of the files that the parts of a scenario read: placements, traces, topologies.

A field called ``path`` names such a file. Its content belongs to the experiment as much as its name.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from fedsim.errors import DataError
from fedsim.identity import nested
from fedsim.inputs.files import MAX_BYTES, read_bytes


def contents(value: object) -> dict[str, str]:
    """Return the SHA-256 of each file that a part or its parts read, by the dotted path of the field that names it.

    A file that cannot be read counts as ``"unreadable"``; the part that reads it gives the reason.
    """
    return {where: _digest(Path(path)) for where, path in _files(value, ())}


def _files(value: object, way: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name, inner in nested(value):
        if name == "path" and isinstance(inner, str):
            yield ".".join((*way, name)), inner
        else:
            yield from _files(inner, (*way, name))


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(read_bytes(path, MAX_BYTES, DataError)).hexdigest()
    except DataError:
        return "unreadable"
