"""Which files a scenario's parts read, and what is in them.

Every field called ``path`` of a part names a file that the part reads when a run is built: a placement, a trace, a
topology. What such a file holds belongs to the experiment as much as its name.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from fedsim.registry import Recipe


def contents(value: Any) -> dict[str, str]:
    """Return the SHA-256 of each file that a part or its parts read, by the dotted path of the field that names it.

    A file that cannot be read counts as ``"unreadable"``; whoever needs it says why.
    """
    return {where: _digest(Path(path)) for where, path in _files(value, ())}


def _files(value: Any, way: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name, inner in _parts(value):
        if name == "path" and isinstance(inner, str):
            yield ".".join((*way, name)), inner
        else:
            yield from _files(inner, (*way, name))


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, BaseModel):
        yield from ((name, getattr(value, name)) for name in type(value).model_fields)
    elif isinstance(value, Recipe):
        yield from value.options.items()
    elif isinstance(value, Mapping):
        yield from ((str(name), inner) for name, inner in value.items())
    elif isinstance(value, list | tuple) and any(isinstance(inner, BaseModel | Mapping) for inner in value):
        yield from ((str(number), inner) for number, inner in enumerate(value))


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "unreadable"
