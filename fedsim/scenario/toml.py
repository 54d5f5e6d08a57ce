"""TOML text as tables, with bounds on what it may hold."""

import tomllib
from typing import Any, Final

from fedsim.errors import ScenarioError
from fedsim.inputs.files import MAX_TEXT_BYTES

DEEPEST: Final = 20
"""Tables and lists within one another."""
_WORD_BITS: Final = 63


class NoTomlError(ScenarioError):
    """A text is not TOML."""


def parse_toml(text: str, source: str) -> dict[str, Any]:
    if len(text) > MAX_TEXT_BYTES:
        raise ScenarioError(f"{source}: has {len(text)} characters; allowed: at most {MAX_TEXT_BYTES}")
    try:
        text.encode()
        tables = tomllib.loads(text)
    except UnicodeEncodeError:  # an argument of a command with bytes that are no UTF-8
        raise ScenarioError(f"{source}: is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise NoTomlError(f"{source}: is not valid TOML: {error}") from None
    except RecursionError:
        raise ScenarioError(f"{source}: holds too many brackets; allowed: {DEEPEST} within one another") from None
    except ValueError as error:  # Python reads no number of thousands of digits
        reason = str(error).partition(";")[0]
        raise ScenarioError(f"{source}: holds a number that cannot be read: {reason}; allowed: 64 bits") from None
    _check_values(tables, source)
    return tables


def _check_values(tables: dict[str, Any], source: str) -> None:
    """Refuse values too deep or too great, without recursion."""
    level: list[tuple[str, Any]] = list(tables.items())
    for _ in range(DEEPEST):
        inner: list[tuple[str, Any]] = []
        for path, value in level:
            if isinstance(value, dict):
                inner += [(f"{path}.{name}", held) for name, held in value.items()]
            elif isinstance(value, list):
                inner += [(path, held) for held in value]
            elif isinstance(value, int) and value.bit_length() > _WORD_BITS:
                raise ScenarioError(
                    f"{source}: {path}: a whole number of {value.bit_length()} bits is not allowed; allowed: 64 bits, "
                    "the sign included"
                )
        if not inner:
            return
        level = inner
    path = level[0][0]
    raise ScenarioError(
        f"{source}: {path[:60]}{'...' if len(path) > 60 else ''}: lies too deep; allowed: {DEEPEST} tables and lists "
        "within one another"
    )
