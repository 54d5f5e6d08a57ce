"""Values set by dotted paths: ``selector.cohort = 10``, on the command line or in a study.

A preset keeps no option: it stands for the numbers of its kind, and one of another cell would be wrong under its name.
"""

import typing
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from fedsim.errors import ScenarioError
from fedsim.foreign import Foreign
from fedsim.identity import nested
from fedsim.registry import Component, Registry, Slot
from fedsim.scenario.toml import DEEPEST, NoTomlError, parse_toml


def parse_assignment(text: str) -> tuple[str, Any]:
    """Return path and value of ``a.b=value``; the value is read as TOML, or as a string if it is no TOML."""
    path, equals, value = text.partition("=")
    steps, source = path.split("."), f"--set {text if len(text) <= 80 else text[:77] + '...'}"
    if not equals or not all(step.strip() for step in steps):
        raise ScenarioError(f"{source}: is not of the form path.to.field=value")
    if len(steps) > DEEPEST:
        raise ScenarioError(f"{source}: names {len(steps)} tables within one another; allowed: {DEEPEST}")
    try:
        tables = parse_toml(f"value = {value}", source)
    except NoTomlError:
        tables = {}
    # Text with a line end could be several values.
    return path.strip(), tables["value"] if len(tables) == 1 else value.strip()


def override(model: type[BaseModel] | None, tables: dict[str, Any], path: str, value: Any) -> str:
    """Set one value in the tables of a model; parts on the path become tables."""
    *way, last = path.split(".")
    table = tables
    slot: Slot | None = None
    for depth, step in enumerate(way):
        annotation = None if model is None else model.model_fields.get(step)
        slot = None if annotation is None else _slot(annotation)
        present = table.get(step)
        if isinstance(present, Foreign) and present.content and last != "kind":
            raise ScenarioError(
                f"{path}: an object of {present.place} has no options that can be replaced; allowed: another value "
                f"of {'.'.join(way[: depth + 1])}"
            )
        opened = _opened(present, slot)
        if opened is None:
            raise ScenarioError(f"{path}: {'.'.join(way[: depth + 1])} is {present!r}, which is no table")
        table[step] = opened
        table, model = opened, _model(opened, slot, None if annotation is None else annotation.annotation)
    told = ""
    if last == "kind" and slot is not None and isinstance(value, str):
        told = _keep_common_options(table, slot.registry, value)
    table[last] = value
    return f"{path}={value}: {told}" if told else ""


def _slot(field: FieldInfo) -> Slot | None:
    """Return the slot of a field, also of one that may be None."""
    choices = (
        choice.__metadata__
        for choice in typing.get_args(field.annotation)
        if typing.get_origin(choice) is typing.Annotated
    )
    return next((slot for metadata in (field.metadata, *choices) if (slot := Slot.of(metadata))), None)


def _opened(value: Any, slot: Slot | None) -> dict[str, Any] | None:
    """Return a value as a table that may be changed: a part as kind and fields, a name as kind; None if it is none."""
    if value is None or value == "none":
        return {} if value is None else {"kind": "none"}
    if isinstance(value, str) and slot is not None:
        return {"kind": value}
    if isinstance(value, Foreign):
        return {"kind": value.place, **value.options}
    if isinstance(value, BaseModel):
        kept = {name: field for name, field in nested(value) if field is not None}
        return kept if slot is None else {"kind": slot.registry.kind_of(value), **kept}
    return dict(value) if isinstance(value, Mapping) else None


def _model(table: Mapping[str, Any], slot: Slot | None, annotation: Any) -> type[BaseModel] | None:
    """Return the class that describes a table's fields, None where none is known."""
    if slot is None:
        candidates = typing.get_args(annotation) or (annotation,)
        return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
    try:
        found: object = slot.registry.load(str(table.get("kind", slot.registry.default)))
    except PydanticCustomError:
        return None
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def _keep_common_options(table: dict[str, Any], catalogue: Registry, kind: str) -> str:
    """Remove the options that a new kind does not have, of a preset all; return what stays and what goes."""
    before = table.get("kind", catalogue.default)
    if before == kind:
        return ""
    try:
        names = catalogue.option_names(kind)
        found: object = catalogue.load(kind)
    except PydanticCustomError:
        return ""
    preset = isinstance(found, type) and issubclass(found, Component) and found.stands_alone
    options = [name for name in table if name != "kind"]
    kept = [] if preset else [name for name in options if name in names]
    removed = [name for name in options if name not in kept]
    for name in removed:
        del table[name]
    said = [f"{what} of {before!r}: {', '.join(some)}" for what, some in (("kept", kept), ("removed", removed)) if some]
    return "; ".join(said)
