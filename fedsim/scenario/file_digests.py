"""Digests of the files that a scenario reads: those of fields called ``path``, and of options of a user's parts."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedsim.code_digest import Code, is_builtin
from fedsim.errors import DataError, ScenarioError
from fedsim.foreign import Foreign, Stateful, parameters_of
from fedsim.identity import VALUES, nested
from fedsim.inputs.files import MAX_BYTES, read_bytes
from fedsim.inputs.paths import is_file
from fedsim.registry import Component


def contents(value: object) -> dict[str, str]:
    """Return the SHA-256 of each file that a part or its parts read, by the dotted path of the field that names it."""
    return {where: _digest(Path(path)) for where, path in files_of(value)}


def check_files(value: object) -> None:
    """Refuse a file that a part or its parts would read and that cannot be read."""
    for where, path in files_of(value):
        read_bytes(path, MAX_BYTES, ScenarioError, f"{where}: {path}")


def without_folders(described: Any, value: object) -> Any:
    """Return the tables of a part in which files that can be read have their names alone."""
    named = {path: Path(path).name for _, path in files_of(value) if is_file(path)}

    def shorter(inner: Any) -> Any:
        if isinstance(inner, dict):
            return {name: shorter(held) for name, held in inner.items()}
        if isinstance(inner, list | tuple):
            return [shorter(held) for held in inner]
        return named.get(inner, inner) if isinstance(inner, str) else inner

    return shorter(described) if named else described


def files_of(value: object, way: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield the dotted path and the value of each field that names a file."""
    owner: object = value.stands_for if isinstance(value, Stateful) else type(value)
    own = isinstance(value, Component) and isinstance(owner, Code) and not is_builtin(owner)
    entries = nested(value.options if isinstance(value, Stateful) else value)
    if isinstance(value, Foreign) and not isinstance(value, Stateful):
        defaults = {name: one.default for name, one in parameters_of(value.found).items()}
        own, entries = True, list({**defaults, **value.options}.items())
    for name, inner in entries:
        if isinstance(inner, str) and (name == "path" or (own and is_file(inner))):
            yield ".".join((*way, name)), inner
        elif type(inner) not in VALUES:
            yield from files_of(inner, (*way, name))


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(read_bytes(path, MAX_BYTES, DataError)).hexdigest()
    except DataError:
        return "unreadable"
