"""The options of one kind: type, unit, default and meaning of each, as its class and its docstring state them."""

import inspect
import re
import types
import typing
from typing import Annotated, Any, Final, Literal

_UNITS: Final = re.compile(
    r"_(s|ms|m|km|bits|bps|kbps|hz|db|dbi|dbm|j|w|deg|h|m_per_s|j_per_bit|j_per_flop|db_per_\w+|per_s)$"
)
_WORDS: Final = {float: "number", int: "whole number", str: "text", bool: "true or false", tuple: "list"}


def rows_of(found: Any) -> list[tuple[str, str, str, str, str]]:
    """Return option, type, unit, default and meaning of each option of a class."""
    from pydantic import BaseModel
    from pydantic_core import PydanticUndefined

    from fedsim.registry import Component, Settings, parameters_of

    meanings = meanings_of(found)
    options: dict[str, tuple[Any, Any]] = {}
    if inspect.isclass(found) and issubclass(found, BaseModel):
        for name, field in found.model_fields.items():
            kind = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
            options[name] = (kind, field.default)
    else:
        options = parameters_of(found)
    rows: list[tuple[str, str, str, str, str]] = []
    for name, (kind, default) in options.items():
        unit = _UNITS.search(name)
        must = default is PydanticUndefined or default is ...
        stated = unit[1].replace("_per_", "/") if unit else ""
        shown = "must be given" if must else _shown(default)
        rows.append((name, _type(kind), stated, shown, meanings.get(name, "")))
        if inspect.isclass(kind) and issubclass(kind, Settings) and not issubclass(kind, Component):
            rows += [(f"{name}.{row[0]}", row[1], row[2], row[3], row[4]) for row in rows_of(kind)]
    return rows


def meanings_of(found: Any) -> dict[str, str]:
    """Return what the docstrings of a class, its bases included, say of each attribute or parameter."""
    meanings: dict[str, str] = {}
    for base in reversed(inspect.getmro(found) if inspect.isclass(found) else (found,)):
        text = inspect.cleandoc(base.__dict__.get("__doc__") or "") if hasattr(base, "__dict__") else ""
        for _, section in re.findall(r"^(Attributes|Parameters)\n-+\n(.*?)(?=\n\n\w[^\n]*\n---|\Z)", text, re.M | re.S):
            for names, meaning in re.findall(r"^(\w[\w, ]*?) : (.*(?:\n[ \n].*)*)", section, re.M):
                meanings |= dict.fromkeys(names.split(", "), _sentence(meaning))
    return meanings


def _sentence(text: str) -> str:
    """Return an entry of a docstring in a line, without its type and its marks of code."""
    first, _, rest = text.partition("\n")
    if rest and re.match(r"(int|float|floats|str|bool|bools|tuple|dict|list)\b", first):
        text = rest
    text = re.sub(r"(?<![.:;,])\n\s+(?=[A-Z])", ". ", text).replace("`", "")
    return " ".join(text.split())


def _type(kind: Any) -> str:
    from fedsim.registry import Slot

    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        slot = Slot.of(inner[1:])
        return f"kind of {slot.registry.noun}" if slot is not None else _type(inner[0])
    if origin is Literal:
        return ", ".join(map(repr, inner))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_type(one) for one in inner if one is not type(None)))
    known = origin or kind
    return _WORDS.get(known, getattr(known, "__name__", str(known)))


def _shown(default: object) -> str:
    if default is None:
        return "none"
    name = type(default).__name__
    return name if hasattr(default, "model_fields") or repr(default).startswith("<") else repr(default)
