"""Scenarios as TOML files."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedsim.errors import ScenarioError
from fedsim.scenario.description import Scenario
from fedsim.scenario.overrides import override


def load(path: str | Path, values: Mapping[str, Any] | None = None) -> Scenario:
    """Return the scenario of a TOML file, with some values replaced by their dotted paths.

    Raises
    ------
    ScenarioError
        If the file cannot be read, is no TOML, or holds values that are not allowed.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ScenarioError(f"{path}: cannot be read: {reason}; a scenario is a TOML file") from None
    return parse(text, str(path), values)


def parse(text: str, source: str, values: Mapping[str, Any] | None = None) -> Scenario:
    """Return the scenario that TOML text describes; ``source`` names it in messages."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{source}: is not valid TOML: {error}") from None
    for path, value in (values or {}).items():
        override(tables, path, value)
    try:
        return Scenario(**tables)
    except ScenarioError as error:
        raise ScenarioError("\n".join(f"{source}: {line}" for line in str(error).splitlines())) from None
