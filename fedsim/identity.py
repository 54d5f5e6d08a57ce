"""What a part is in digests: its kind, its options, and the code of a user's own parts."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

from fedsim.answers import unchecked
from fedsim.code_digest import Code, CodeDigest, code_digest, folder_of, is_builtin
from fedsim.registry import BUILTIN_KINDS, Component

VALUES: Final = frozenset({bool, int, float, str, type(None)})
"""Types of values that hold nothing else; most fields have one, and a walk through a scenario passes them by."""


def nested(value: object) -> list[tuple[str, object]]:
    """Return name and value of each entry of a part, table, or list of parts or tables; nothing of a value."""
    if isinstance(value, BaseModel):
        return [(name, getattr(value, name)) for name in type(value).model_fields]
    if isinstance(value, Mapping):
        return [(str(name), inner) for name, inner in value.items()]
    if isinstance(value, list | tuple) and any(isinstance(inner, BaseModel | Mapping) for inner in value):
        return [(str(number), inner) for number, inner in enumerate(value)]
    return []


def parts_of(value: object, path: str = "") -> Iterator[tuple[str, Component]]:
    """Yield the path and the part of each part in a value, at any depth."""
    for name, inner in nested(value):
        if type(inner) not in VALUES:
            where = f"{path}.{name}" if path else name
            if isinstance(inner, Component):
                yield where, inner
            yield from parts_of(inner, where)


def user_code(value: object) -> dict[str, CodeDigest]:
    """Return the code of each part in a value, the value included, that is not fedsim's own."""
    return {path: code_digest(owner) for path, owner in users_own(value).items()}


def module_folders(value: object) -> list[str]:
    """Return the folders from which the modules of the user's own parts in a value are imported."""
    folders = map(folder_of, users_own(value).values())
    return sorted({folder for folder in folders if folder})


def users_own(value: object, path: str = "") -> dict[str, Code]:
    """Return the class or function of each part in a value, the value included, that is not fedsim's own."""
    found: dict[str, Code] = {}
    owner: object = type(value)
    if isinstance(value, Component) and value.stands_for is not None:
        owner = value.stands_for
    if isinstance(value, BaseModel) and isinstance(owner, Code) and not is_builtin(owner):
        found[path] = owner
    for name, inner in nested(value):
        if type(inner) not in VALUES:
            found.update(users_own(inner, f"{path}.{name}" if path else name))
    return found


def copied(part: Any) -> Any:
    """Return a copy of a part, so that neither a probe nor a run leaves a trace in it; itself where it has none."""
    try:
        return copy.deepcopy(part)
    except Exception:  # a lock, an open file
        return part


def identity(part: object) -> str:
    """Return the text that stands for a part in digests: its kind, its options, and the code of users' parts.

    A part that is no table speaks through its ``repr``; where that is Python's default, the text is that of the very
    same object only.
    """
    part = unchecked(part)
    owner = type(part)
    place = f"{owner.__module__}:{owner.__qualname__}"
    kind = BUILTIN_KINDS.get(place, owner.__qualname__ if is_builtin(owner) else place)
    options = part.model_dump_json() if isinstance(part, BaseModel) else repr(part)
    return " ".join([kind, options, *(f"{path}={code.text}" for path, code in user_code(part).items())])
