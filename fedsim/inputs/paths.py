"""Paths of files that a scenario names: absolute, from the folder of the scenario's file or from the working folder."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field


def absolute(path: str, folder: str | Path = "") -> str:
    """Return the path of a file from a folder on, by default from the working folder; ``~`` is the home folder."""
    if "\\" in path and os.sep == "/":
        raise ValueError("a backslash does not part folders; allowed: / as in data/places.csv")
    try:
        expanded = Path(path).expanduser()
    except RuntimeError:
        raise ValueError("there is no such home folder; allowed: a path without ~") from None
    return Path(os.path.abspath(Path(folder) / expanded)).as_posix()  # noqa: PTH100 (links stay as they are)


def _text(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


InputPath = Annotated[str, BeforeValidator(_text), Field(min_length=1), AfterValidator(absolute)]
"""Type of a field that names a file to read; the field is called ``path``."""


def located(value: Any, folder: str | Path = "") -> Any:
    if isinstance(value, Mapping):
        own = ":" in str(value.get("kind", ""))
        return {name: _placed(str(name), inner, folder, own=own) for name, inner in value.items()}
    if isinstance(value, list | tuple) and any(isinstance(inner, Mapping | list | tuple) for inner in value):
        return type(value)(located(inner, folder) for inner in value) if type(value) in (list, tuple) else value
    return value


def _placed(name: str, value: Any, folder: str | Path, *, own: bool) -> Any:
    if not isinstance(value, str):
        return located(value, folder)
    named = name == "path" or (own and name != "kind" and is_file(Path(folder) / value))
    with suppress(ValueError):  # of a path that the field itself refuses
        return absolute(value, folder) if named and value else value
    return value


def is_file(path: str | Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 (False also for a name that no file can have)
