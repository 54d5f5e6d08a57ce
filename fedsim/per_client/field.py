"""The annotation of a field that may hold a value for each client, and what it is in a run.

``samples_per_s: Annotated[ClientValues, PerClient(gt=0)]`` takes a number, a list with one number for each client, a
law (``{ kind = "log-normal", median = 100.0, sigma = 0.5 }``) or a column of a table
(``{ column = "speed", path = "clients.csv" }``). The bounds hold for every value.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Number
from typing import Any, TypeGuard

import numpy as np
from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, SchemaValidator, core_schema

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import ScenarioError
from fedsim.inputs.bounds import NUMBER, WHOLE, unusual
from fedsim.inputs.tables import note
from fedsim.per_client.laws import CLIENT_LAW, CLIENT_LAWS, ClientLaw, Column
from fedsim.registry import Component, Slot, refusal, units_of
from fedsim.streams import Streams
from fedsim.units import Bound, bound_of

ClientValues = float | tuple[float, ...] | ClientLaw
"""What a scenario holds: a number for all clients, a number for each, or a law."""
Values = float | FloatArray
"""What a run has: a number for all clients, or one for each, shape (K,)."""


@dataclass(frozen=True)
class PerClient(Slot):
    registry: Any = CLIENT_LAWS
    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None
    whole: bool = False

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        """Validate a number as usual, each number of a list, and a law with its registry."""
        number = SchemaValidator(self._number())
        plain = core_schema.plain_serializer_function_ser_schema(self._described)

        def make(value: Any) -> Any:
            if isinstance(value, list | tuple):
                return _each(value, number)
            if isinstance(value, str) or not isinstance(value, dict | Component):
                return number.validate_python(value)
            law = self.registry.make(value)
            self._check_limits(law)
            return law

        return core_schema.no_info_plain_validator_function(make, serialization=plain)

    def allowed(self) -> str:
        words = {"above": self.gt, "at least": self.ge, "below": self.lt, "at most": self.le}
        told = [f"{word} {limit:g}" for word, limit in words.items() if limit is not None]
        kind = "whole numbers" if self.whole else "numbers"
        return f"{kind} {' and '.join(told)}" if told else kind

    def admits(self, values: FloatArray) -> Any:
        """Return whether each value is within the bounds, of the shape of the values."""
        fits = np.isfinite(values)
        for limit, holds in (
            (self.gt, np.greater),
            (self.ge, np.greater_equal),
            (self.lt, np.less),
            (self.le, np.less_equal),
        ):
            if limit is not None:
                fits &= holds(values, limit)
        return fits & (values == np.rint(values)) if self.whole else fits

    def _number(self) -> core_schema.CoreSchema:
        bounds = {name: limit for name, limit in vars(self).items() if name in ("gt", "ge", "lt", "le")}
        given: dict[str, Any] = {name: limit for name, limit in bounds.items() if limit is not None}
        if self.whole:
            whole: dict[str, Any] = {name: int(limit) for name, limit in given.items()}
            return core_schema.int_schema(strict=True, **whole)
        return core_schema.float_schema(strict=True, allow_inf_nan=False, **given)

    def _described(self, value: Any) -> Any:
        return self.registry.describe(value) if isinstance(value, Component) else value

    def _check_limits(self, law: ClientLaw) -> None:
        """Refuse a law that may give values out of the bounds."""
        limits = law.limits()
        if limits is None:
            return
        low, high = limits
        # A limit that no value reaches, 0 or inf, is no value itself.
        wrong = [
            *([low] if (self.gt is not None and low < self.gt) or (self.ge is not None and low < self.ge) else []),
            *([high] if (self.lt is not None and high > self.lt) or (self.le is not None and high > self.le) else []),
        ]
        if wrong:
            raise refusal(
                "law_limits",
                "its values lie between {low} and {high}; they must be {words} (least and greatest limit them)",
                low=f"{low:g}",
                high=f"{high:g}",
                words=self.allowed(),
            )


def _each(values: Any, number: SchemaValidator) -> tuple[Any, ...]:
    if not values:
        raise refusal("too_short", "a list has one number for each client")
    found = []
    for place, value in enumerate(values):
        try:
            found.append(number.validate_python(value))
        except ValidationError as error:
            lines = [_at_place(dict(line), place) for line in error.errors(include_url=False)]
            raise ValidationError.from_exception_data("list", lines) from None
    return tuple(found)


def _at_place(line: dict[str, Any], place: int) -> InitErrorDetails:
    found: InitErrorDetails = {"type": line["type"], "loc": (place,), "input": line["input"]}
    if "ctx" in line:
        found["ctx"] = line["ctx"]
    return found


def one_number(value: object) -> bool:
    """Return whether a value of a table of a scenario is one number for all clients."""
    return isinstance(value, Number)


def values_of(part: BaseModel, name: str, clients: int, streams: Streams, path: str) -> Values:
    """Return the value of a field in a run: a number for all clients, or one for each, shape (clients,)."""
    given: Any = getattr(part, name)
    if one_number(given):
        return float(given)
    field = f"{path}.{name}"
    bounds = next(item for item in _annotations(type(part), name) if isinstance(item, PerClient))
    if isinstance(given, tuple):
        if len(given) != clients:
            raise ScenarioError(
                f"{field}: a list of {len(given)} values is not allowed; there must be one for each of the {clients} "
                "clients"
            )
        found = np.array(given, dtype=np.float64)
    else:
        found = CLIENT_LAW.checked(given, clients=clients).values(clients, streams, field)
        if bounds.whole and not isinstance(given, Column):
            found = np.rint(found)
    _check(found, bounds, _limits(type(part), name, bounds), field, given)
    if not isinstance(given, tuple):
        for words in unusual(field, units_of(type(part))[name], found.tolist()):
            note(f"{field}: {given.path}" if isinstance(given, Column) else field, words)
    return found


def at(values: Values, client: IntArray) -> Values:
    return values[client] if isinstance(values, np.ndarray) else values


def of_one(values: Values, i: int) -> float:
    return float(values[i]) if isinstance(values, np.ndarray) else values


def is_one(values: Values) -> TypeGuard[float]:
    return not isinstance(values, np.ndarray)


def by_value(values: Values, ask: Callable[[IntArray | slice, float], FloatArray]) -> FloatArray:
    """Return what a function of one value gives for clients of several values, shape (n,)."""
    if not isinstance(values, np.ndarray):
        return ask(slice(None), values)
    found = np.empty(values.size)
    for value in np.unique(values).tolist():
        alike = np.flatnonzero(values == value)
        found[alike] = ask(alike, value)
    return found


def _annotations(part: type[BaseModel], name: str) -> list[Any]:
    field = part.model_fields[name]
    choices = getattr(field.annotation, "__args__", ())
    return [*field.metadata, *(item for choice in choices for item in getattr(choice, "__metadata__", ()))]


def _limits(part: type[BaseModel], name: str, bounds: PerClient) -> Bound:
    field = part.model_fields[name]
    return bound_of(field.annotation, field.metadata) or (WHOLE if bounds.whole else NUMBER)


def _check(values: FloatArray, bounds: PerClient, limits: Bound, field: str, given: object) -> None:
    size = np.abs(values)
    fits = bounds.admits(values)
    known = (values == 0) | ((size >= limits.least) & (size <= limits.greatest))
    if np.all(fits & known):
        return
    client = int(np.flatnonzero(~(fits & known))[0])
    where = f" (of {given.path}, column {given.column!r})" if isinstance(given, Column) else ""
    words = limits.words() if fits[client] else bounds.allowed()
    raise ScenarioError(f"{field}: client {client}: {values[client].item()!r}{where} is not allowed; allowed: {words}")
