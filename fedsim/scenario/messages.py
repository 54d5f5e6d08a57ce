"""Messages to users from the errors of pydantic."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from pydantic import ValidationError

_MOST_BITS: Final = 256
"""Python refuses to write numbers of more than 4,300 digits."""
_BEGINS_WITH_A_WHOLE_NUMBER: Final = re.compile(r"-?\d+(?!\d*(?:[.][0-9]*[1-9]|[eE]))")
_BEGINS_WITH_A_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\d,:])")
_OF_A_FIELD: Final = re.compile(r"(?P<field>[\w.]+) = (?P<rest>.* is not allowed .*)", re.DOTALL)
"""What a table says of one of its fields, beside others."""


def explain(error: ValidationError) -> str:
    """Return one line for each wrong value: its path, the value and what is allowed."""
    return "\n".join(_line(dict(detail)) for detail in error.errors(include_url=False, include_context=False))


def _line(detail: dict[str, Any]) -> str:
    path = ".".join(str(step) for step in detail["loc"]) or "scenario"
    if detail["type"] == "missing":
        return f"{path}: is missing; a value is required here"
    message = detail["msg"].removeprefix("Value error, ") + _example(detail["type"], detail["input"])
    shown = _shown(detail["input"])
    if detail["type"] == "unknown_name":
        return f"{path}: {message}"
    named = _OF_A_FIELD.match(message)
    if named is not None and isinstance(detail["input"], Mapping):
        return f"{path}.{named['field']}: {named['rest']}"
    return f"{path}: {shown} is not allowed; {message[:1].lower()}{message[1:]}"


def _example(kind: str, value: object) -> str:
    """Return what a value of another type may have meant; empty where that is not known."""
    if kind == "bool_type":
        return ", such as true"
    if kind == "string_type" and isinstance(value, int | float | date):
        return f', such as "{value}"'
    if kind == "int_type" and isinstance(value, str | int | float):
        whole = _BEGINS_WITH_A_WHOLE_NUMBER.match(str(value))
        return f", such as {int(whole[0])}" if whole else ""
    if kind == "float_type" and isinstance(value, str) and (number := _BEGINS_WITH_A_NUMBER.match(value)):
        return f", such as {float(number[0]) / (100 if value.endswith('%') else 1):g}"
    return ""


def _shown(value: object) -> str:
    """Return a value as Python writes it, cut where it is long."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"a whole number of {value.bit_length()} bits"
    text = " ".join(line.strip() for line in repr(value).splitlines())  # an array has several lines
    return text if len(text) <= 80 else text[:77] + "..."
