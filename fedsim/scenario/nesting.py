"""The parts within a part of a scenario."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from fedsim.registry import Recipe


def nested(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each field of a part; those of a list of parts are numbered from 0."""
    if isinstance(value, BaseModel):
        yield from ((name, getattr(value, name)) for name in type(value).model_fields)
    elif isinstance(value, Recipe):
        yield from value.options.items()
    elif isinstance(value, Mapping):
        yield from ((str(name), inner) for name, inner in value.items())
    elif isinstance(value, list | tuple) and any(isinstance(inner, BaseModel | Mapping) for inner in value):
        yield from ((str(number), inner) for number, inner in enumerate(value))
