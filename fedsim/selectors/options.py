"""What options of selectors may hold, as annotations of their fields, and the check of a selector's options."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from fedsim.code_digest import is_builtin


@dataclass(frozen=True)
class Range:
    """Annotation of an option: a finite number, at least (or above) the least one and at most (or below) the greatest.

    A selector checks it itself, so that one that is made in Python is refused in the same words as one of a scenario.
    """

    least: int
    most: float = math.inf
    above: bool = False
    below: bool = False

    def check(self, name: str, value: Any, *, whole: bool = False) -> None:
        """Refuse a value of an option that is out of the range, or no whole number where it must be one."""
        kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
        number = isinstance(value, kinds) and not isinstance(value, bool) and np.isfinite(value)
        words = f"a {'whole' if whole else 'finite'} number {'above' if self.above else 'of at least'} {self.least}"
        if number and value >= self.least and not (self.above and value == self.least):
            if value < self.most or (value == self.most and not self.below):
                return
            words = f"{'below' if self.below else 'at most'} {self.most:g}"
        raise ValueError(f"{name}: {value!r} is not allowed; it must be {words}")


_Number = TypeVar("_Number")
AtLeast0 = Annotated[_Number, Range(0)]
Above0 = Annotated[_Number, Range(0, above=True)]
Share = Annotated[float, Range(0, 1)]
PositiveShare = Annotated[float, Range(0, 1, above=True)]
Whole = Annotated[int, Range(0)]
Count = Annotated[int, Range(1)]
Several = Annotated[int, Range(2)]


def check_options(selector: Any) -> None:
    """Refuse options of a selector, the fields of a dataclass, that their annotations do not allow."""
    found: Any = type(selector)
    for name, kind in _options_of(found).items():
        _check(name, getattr(selector, name), kind)


@functools.cache
def _options_of(selector: type[Any]) -> dict[str, Any]:
    # Annotations of a user's own class need not be names that can be found.
    own = next(one for one in selector.__mro__ if is_builtin(one))
    hints = get_type_hints(own, include_extras=True)
    return {each.name: hints[each.name] for each in fields(own)}


def _check(name: str, value: Any, kind: Any) -> None:
    parts = get_args(kind)
    if NoneType in parts:
        if value is not None:
            _check(name, value, parts[0])
    elif get_origin(kind) in (list, Sequence) and hasattr(parts[0], "__metadata__"):
        for place, one in enumerate(value):
            _check(f"{name}[{place}]", one, parts[0])
    elif get_origin(kind) is Literal and value not in parts:
        raise ValueError(f"{name}: {value!r} is not allowed; it must be {' or '.join(map(repr, parts))}")
    elif kind is bool and not isinstance(value, bool):
        raise ValueError(f"{name}: {value!r} is not allowed; it must be True or False")
    else:
        for limit in getattr(kind, "__metadata__", ()):
            if isinstance(limit, Range):
                limit.check(name, value, whole=kind.__origin__ is int)
