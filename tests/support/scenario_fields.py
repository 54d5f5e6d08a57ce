"""Every field of the schema of a scenario, each with a scenario that has it and with another value that it may have.

The schema is walked from its tables through every kind of every catalogue; `tests.support.field_values` has the options
that kinds need, what must stand beside them, and other values of fields whose type does not tell any.
"""

import copy
import functools
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args

from pydantic import BaseModel

from fedsim import Scenario
from fedsim.errors import ScenarioError
from fedsim.identity import nested
from fedsim.network.medium.cell import SharingSlot
from fedsim.registry import Registry, Slot
from fedsim.scenario.sections import ScenarioTables
from fedsim.units import Bound, bound_of
from tests.support.field_values import BESIDE, NOT_INSTALLED, NOT_THERE, OPTIONS, OTHERS, TABLES, TOGETHER, Tables


@dataclass(frozen=True)
class SchemaField:
    """A field in a scenario that has it; `part` is its table or slot and the kind there: `rounds.policy deadline`."""

    path: str
    part: str
    name: str
    tables: Tables
    annotation: Any
    slot: Slot | None
    build: Callable[[], Scenario]  # the same object for all fields of a part, when it is first asked for

    @property
    def scenario(self) -> Scenario:
        return self.build()

    def changed(self) -> Scenario | None:
        """Return the scenario with another value of the field; None if none is found that is allowed."""
        for other in self._others(_value(self.scenario, self.path)):
            tables = with_values(self.tables, {self.path: other, **TOGETHER.get(self.path, {})})
            try:
                found = Scenario(**tables)
            except ScenarioError:
                continue
            if found != self.scenario:
                return found
        return None

    def _others(self, value: object) -> Iterator[object]:
        if self.path in OTHERS:
            yield OTHERS[self.path]
        if self.slot is not None:
            yield from (filled(self.slot.registry, kind) for kind in kinds_of(self.slot))
        yield from literals_of(self.annotation)
        if value is None:
            table = table_of(self.annotation)
            yield from (table and OPTIONS.get(table.__name__, {}), 1, 0.5, 2, 100.0, True, False)
        elif isinstance(value, bool):
            yield not value
        elif isinstance(value, int | float):
            yield from (value + 1, value * 2, value / 2, value * 0.9, value - 1, value + 0.1)
        elif isinstance(value, tuple | list):
            yield from ([one * 0.9 for one in value if isinstance(one, float)], [*value, *value])
        yield None


def schema_fields() -> tuple[SchemaField, ...]:
    """Return every field of the schema, but for tables that are always there, whose own fields stand for them.

    Where a part stands counts in the tables of learning, privacy and rounds, so there it is visited in each place; in
    another table each part is visited once.
    """
    return tuple(_fields_of(ScenarioTables, "", "", TABLES, set()))


def _fields_of(owner: Any, path: str, part: str, tables: Tables, seen: set[Any]) -> Iterator[SchemaField]:
    top = path.partition(".")[0]
    key = part if top in ("", "learning", "privacy", "rounds") else top, owner
    if key in seen:
        return
    seen.add(key)
    build = functools.cache(functools.partial(Scenario, **tables))
    for name, (annotation, slot) in declared(owner).items():
        here = f"{path}.{name}" if path else name
        if slot is not None or table_of(annotation) is None or NoneType in get_args(annotation):
            yield SchemaField(here, part, name, tables, annotation, slot, build)
        for inner, where, place, below in _parts_in(annotation, slot, here, tables):
            yield from _fields_of(inner, where, place, below, seen)


def _parts_in(annotation: Any, slot: Slot | None, here: str, tables: Tables) -> Iterator[tuple[Any, str, str, Tables]]:
    if slot is not None:
        registry, many = slot.registry, typing.get_origin(annotation) is tuple
        for kind in registry.builtin:
            if (here, kind) not in NOT_THERE and kind not in NOT_INSTALLED:
                part = filled(registry, kind)
                new = {here: [part] if many else part, **BESIDE.get(f"{registry.noun} {kind}", {})}
                yield registry.load(kind), f"{here}.0" if many else here, f"{here} {kind}", with_values(tables, new)
    elif (table := table_of(annotation)) is not None:
        there = reached(tables, here.split(".")) is not None
        new = {here: OPTIONS.get(table.__name__, {}), **BESIDE.get(table.__name__, {})}
        yield table, here, here, tables if there else with_values(tables, new)


@functools.cache
def declared(owner: Any) -> Mapping[str, tuple[Any, Slot | None]]:
    if issubclass(owner, BaseModel):
        return {name: (field.annotation, _slot(field)) for name, field in owner.model_fields.items()}
    if owner.__init__ is object.__init__:
        return {}
    hints = typing.get_type_hints(owner.__init__)
    return {name: (hints.get(name), None) for name in inspect.signature(owner).parameters}


@functools.cache
def stated_bounds(owner: Any) -> Mapping[str, Bound | None]:
    if issubclass(owner, BaseModel):
        return {name: bound_of(field.annotation, field.metadata) for name, field in owner.model_fields.items()}
    hints = typing.get_type_hints(owner.__init__, include_extras=True)
    return {name: bound_of(hints.get(name)) for name in declared(owner)}


def _slot(field: Any) -> Slot | None:
    metadata = [field.metadata, *(getattr(one, "__metadata__", ()) for one in get_args(field.annotation))]
    return next((slot for part in metadata if (slot := Slot.of(part)) is not None), None)


def table_of(annotation: Any) -> type[BaseModel] | None:
    choices = [one for one in get_args(annotation) if one is not NoneType] or [annotation]
    found = [one for one in choices if isinstance(one, type) and issubclass(one, BaseModel)]
    return found[0] if len(choices) == 1 and found else None


def literals_of(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) is typing.Literal:
        return get_args(annotation)
    return tuple(choice for inner in get_args(annotation) for choice in literals_of(inner))


def kinds_of(slot: Slot) -> tuple[str, ...]:
    return (*(slot.words if isinstance(slot, SharingSlot) else ()), *slot.registry.builtin)


def filled(registry: Registry, kind: str) -> Any:
    if kind not in registry.builtin:
        return kind
    options = OPTIONS.get(f"{registry.noun} {kind}", {})
    if not options and "cohort" in registry.option_names(kind):
        options = {"cohort": 2}
    return {"kind": kind, **options}


def reached(tables: Any, way: Sequence[str]) -> Any:
    """Return what lies at a path of tables; None where it ends early."""
    for step in way:
        tables = tables.get(step) if isinstance(tables, Mapping) else None
    return tables


def _value(scenario: Scenario, path: str) -> object:
    found: object = scenario
    for step in path.split("."):
        found = dict(nested(found)).get(step)
    return found


def with_values(tables: Tables, values: Mapping[str, Any]) -> Tables:
    """Return tables in which some values differ; None takes a field out."""
    made = copy.deepcopy(tables)
    for path, value in values.items():
        *way, last = path.split(".")
        table: Any = made
        for step in way:
            if isinstance(table, list):
                table = table[int(step)]
                continue
            inside = table.get(step)
            table[step] = {"kind": inside} if isinstance(inside, str) else {} if inside is None else inside
            table = table[step]
        if value is None:
            table.pop(last, None)
        else:
            table[last] = copy.deepcopy(value)
    return made
