"""Messages to users from the errors of pydantic."""

from typing import Any

from pydantic import ValidationError


def explain(error: ValidationError) -> str:
    """Return one line for each wrong value: its path, the value and what is allowed."""
    return "\n".join(_line(dict(detail)) for detail in error.errors(include_url=False, include_context=False))


def _line(detail: dict[str, Any]) -> str:
    path = ".".join(str(step) for step in detail["loc"]) or "scenario"
    if detail["type"] == "missing":
        return f"{path}: is missing; a value is required here"
    message = detail["msg"].removeprefix("Value error, ")
    value = repr(detail["input"])
    shown = value if len(value) <= 80 else value[:77] + "..."
    if detail["type"] == "unknown_name":
        return f"{path}: {message}"
    return f"{path}: {shown} is not allowed; {message[:1].lower()}{message[1:]}"
