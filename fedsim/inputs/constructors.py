"""The options that a constructor takes, as a table with their types and defaults."""

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, create_model

STRICT: Final = ConfigDict(
    frozen=True, extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True, validate_default=True
)
"""No unknown names, no silent conversions, no NaN."""


def parameters_of(constructor: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotation and the default of each parameter by name, as `pydantic.create_model` takes them."""
    called: Any = typing.cast(Any, constructor).__init__ if inspect.isclass(constructor) else constructor
    if called == object.__init__:
        return {}
    try:
        hints = typing.get_type_hints(called, include_extras=True)
    except NameError:
        hints = {}
    return {
        name: (hints.get(name, Any), ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in inspect.signature(constructor).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }


def table_of(title: str, constructor: Callable[..., Any]) -> type[BaseModel]:
    """Return the table of a constructor's options."""
    return create_model(title, __config__=STRICT, **parameters_of(constructor))


kept_table_of: Final[Callable[[str, Any], type[BaseModel]]] = functools.cache(table_of)
"""As `table_of`, for constructors of fedsim's own, which stay as they are."""
