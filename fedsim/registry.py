"""How a scenario names its parts: kinds, their options, and plug-ins.

A scenario has slots (a network, a fading law, a selector ...). A slot is filled by

* a kind from its registry: ``fading = { kind = "rayleigh", coherence_s = 0.02 }``, or ``"none"`` for short,
* a class of the user's: ``kind = "package.module:Class"``, or one that an installed package registers as an
  entry point in the registry's group, or
* an object, when the scenario is written in Python.

Parts are frozen values with behaviour and derive from `Component`. Selectors keep state and are ordinary classes: the
part that a scenario holds builds a fresh one for each run (`fedsim.foreign.Stateful`).
"""

import functools
import importlib
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema

from fedsim.code_digest import is_builtin
from fedsim.errors import suggest
from fedsim.inputs.bounds import out_of_bounds
from fedsim.inputs.plugins import PluginError, load_kind, registered, with_package
from fedsim.inputs.quantities import in_unit, listed, plain
from fedsim.lazy import without_collections
from fedsim.run_setup import other_build
from fedsim.units import Bound, bound_of, unit_of


def refusal(code: str, message: str, /, **context: object) -> PydanticCustomError:
    """Return an error that pydantic reports under the field's path; ``{name}`` is filled from the context."""
    return PydanticCustomError(code, message, {key: str(value) for key, value in context.items()})


_STRICT: Final = ConfigDict(
    frozen=True, extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True, validate_default=True
)


class Settings(BaseModel):
    """A frozen, strict table of a scenario: no unknown names, no silent conversions, no NaN."""

    model_config = _STRICT

    @model_validator(mode="before")
    @classmethod
    def _unknown_names(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            check_names(cls.__name__, value, cls.model_fields)
            return cls._completed(numbers_of(cls.__name__, cls, value))
        return value

    @classmethod
    def _completed(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return options, whose numbers are in the units of their fields by now, with what follows from them."""
        return options

    @model_validator(mode="after")
    def _within_bounds(self) -> Self:
        options = {name: getattr(self, name) for name in type(self).model_fields}
        check_bounds(type(self).__name__, type(self), options, own=is_builtin(type(self)))
        return self


class Component(Settings):
    """A settings table with behaviour; subclass it to write a part of your own.

    Attributes
    ----------
    stands_alone : whether the kind stands for numbers of its own, and keeps no option of a kind that it replaces

    Examples
    --------
    >>> class Halved(Component):
    ...     factor: float = 0.5
    >>> Halved(factor=0.25).factor
    0.25
    """

    stands_alone: ClassVar[bool] = False

    @property
    def stands_for(self) -> object:
        """The class, function or object of another kind that the part stands for; None if it stands for itself."""
        return None

    def described(self) -> dict[str, Any] | None:
        """Return the table that makes the part again if it stands for something else, and otherwise None."""
        return None

    @property
    def known_deviation(self) -> str:
        """What is known to be off of the real thing with these options, in a sentence; empty if nothing is."""
        return ""

    @property
    def requires(self) -> frozenset[str]:
        """Names of what other parts of the scenario must provide; see `fedsim.capabilities`."""
        return frozenset()

    @property
    def provides(self) -> frozenset[str]:
        """Names of what other parts of the scenario may require of this one; see `fedsim.capabilities`."""
        return frozenset()

    @property
    def excludes(self) -> frozenset[str]:
        """Names of what no other part of the scenario may provide; see `fedsim.capabilities`."""
        return frozenset()

    def effects(self, run: Any) -> Sequence[Any]:
        """Return what the part brings to participations beside its own kind; by default nothing.

        Parameters
        ----------
        run : what a run stands on (`fedsim.rounds.Run`)

        Returns
        -------
        effects : list of `fedsim.rounds.Effect`
        """
        return ()

    def update_steps(self, run: Any) -> Sequence[Any]:
        """Return the steps that the part puts between a client's training and the server's sum; by default none.

        Parameters
        ----------
        run : what a part may read of its run (`fedsim.learning.steps.contracts.StepRun`)

        Returns
        -------
        steps : list of `fedsim.learning.steps.contracts.UpdateStep`
        """
        return ()


def check_names(title: str, given: Mapping[str, Any], allowed: Iterable[str]) -> None:
    """Refuse names that a table does not have, each under its own path and with the closest allowed name."""
    names = list(allowed)
    unknown: list[InitErrorDetails] = [
        {
            "type": refusal(
                "unknown_name",
                "there is no such option{hint}; allowed: {names}",
                hint=suggest(str(key), names),
                names=", ".join(names) or "none",
            ),
            "loc": (str(key),),
            "input": value,
        }
        for key, value in given.items()
        if key not in names
    ]
    if unknown:
        raise ValidationError.from_exception_data(title, unknown)


def numbers_of(title: str, table: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with numbers of NumPy, and texts with a unit of their field, as numbers of Python."""
    found, wrong, units = dict(given), list[InitErrorDetails](), units_of(table)
    for name, unit in units.items():
        if name in found:
            try:
                value = plain(found[name])
                if _takes_several(table.model_fields[name].annotation):
                    value = listed(value)
                found[name] = in_unit(value, unit, name) if unit else value
            except ValueError as error:
                wrong.append({"type": refusal("unit", "{error}", error=error), "loc": (name,), "input": found[name]})
    if wrong:
        raise ValidationError.from_exception_data(title, wrong)
    return found


@functools.lru_cache(maxsize=4096)
def units_of(table: type[BaseModel]) -> Mapping[str, str]:
    """Return the unit of each field that is no slot, or that takes a value for each client; empty without one."""
    fields = {name: field for name, field in table.model_fields.items() if not _takes_parts(field.metadata)}
    return {name: unit_of(field.annotation, field.metadata) for name, field in fields.items()}


def _takes_several(annotation: Any) -> bool:
    """Return whether a field takes a tuple or list."""
    return typing.get_origin(annotation) in (tuple, list) or any(map(_takes_several, typing.get_args(annotation)))


def _takes_parts(metadata: Iterable[object]) -> bool:
    """Return whether a field takes parts alone, which read their own options."""
    return any(type(item) is Slot for item in metadata)


def check_bounds(title: str, table: type[BaseModel], options: Mapping[str, Any], *, own: bool) -> None:
    """Refuse numbers out of the bounds of a table's fields, each under its own path; see `fedsim.inputs.bounds`."""
    stated = _stated_bounds(table)
    wrong: list[InitErrorDetails] = []
    for name, value in options.items():
        found = out_of_bounds(value, stated[name], own=own)
        if found is not None:
            message = refusal("out_of_bounds", "allowed: {words}", words=found[1].words())
            wrong.append({"type": message, "loc": (name,), "input": found[0]})
    if wrong:
        raise ValidationError.from_exception_data(title, wrong)


@functools.lru_cache(maxsize=4096)
def _stated_bounds(table: type[BaseModel]) -> Mapping[str, Bound | None]:
    return {name: bound_of(field.annotation, field.metadata) for name, field in table.model_fields.items()}


BUILTIN_KINDS: Final[dict[str, str]] = {}
"""Registry and kind of fedsim's own parts, by the places of their classes."""


class Registry:
    """The kinds that may fill a slot."""

    def __init__(
        self,
        noun: str,
        group: str,
        methods: tuple[str, ...],
        builtin: Mapping[str, str],
        default: str | None = None,
        attributes: tuple[str, ...] = (),
        foreign: str = "",
        stateful: str = "",
    ) -> None:
        self.foreign, self.stateful = foreign, stateful
        self.noun, self.group, self.methods, self.attributes = noun, group, methods, attributes
        self.builtin, self.default = dict(builtin), default
        BUILTIN_KINDS.update({place: f"{group} {kind}" for kind, place in builtin.items()})

    def kinds(self) -> dict[str, str]:
        """Return every kind by name with the place of its class, the registered ones included."""
        return {**{name: found.places[0] for name, found in registered(self.group).items()}, **self.builtin}

    def load(self, kind: str) -> type[Any]:
        """Return the class of a kind, refusing names that are not known and classes that do not fit."""
        if kind in self.builtin:
            module, _, name = self.builtin[kind].partition(":")
            with without_collections():
                found = getattr(importlib.import_module(module), name)
        else:
            try:
                found = load_kind(self.group, kind)
            except PluginError as error:
                raise refusal("no_class", "{error}", error=error) from error
        if found is None:
            raise refusal(
                "unknown_kind",
                "there is no {noun} {kind}{hint}; allowed: {names}, or 'module:Class'",
                noun=self.noun,
                kind=repr(kind),
                hint=suggest(kind, self.kinds()),
                names=", ".join(sorted(self.kinds())),
            )
        if not self.foreign or _is_component(found):
            self._check_methods(found)
        return typing.cast(type[Any], found)

    def kind_of(self, part: object) -> str:
        """Return the name under which a part's class can be found again."""
        if isinstance(part, Component) and (told := part.described()) is not None:
            return str(told["kind"])
        place = f"{type(part).__module__}:{type(part).__qualname__}"
        # The kinds of other packages are read from files, which takes milliseconds.
        for kinds in (self.builtin, {} if is_builtin(type(part)) else self.kinds()):
            for kind, where in kinds.items():
                if where == place:
                    return kind
        return place

    def make(self, value: Any) -> Any:
        """Return the part that a scenario's value describes: a kind, a table with one, or the part itself."""
        if isinstance(value, type) and not self.foreign:
            name = value.__name__
            raise refusal("a_class", "it is a class; allowed: an object, {name}(...), or 'module:{name}'", name=name)
        if self.stateful:
            return self._made(value)
        if isinstance(value, str | Mapping):
            kind, options = self.split(value)
            found = self.load(kind)
            if _is_component(found):
                value = found.model_validate(_without_none(options, found.model_fields))
            elif self.foreign:
                value = _named(self.foreign).of_place(kind, found, options)
            else:
                raise self._no_component()
        elif self.foreign and not isinstance(value, Component):
            value = _named(self.foreign).of_object(value)
        if not isinstance(value, Component):
            raise self._no_component()
        self._check_methods(value)
        silent = [name for name in self.attributes if not _states(value, name)]
        if silent:
            raise refusal(
                "not_a_part", "{found} must say {names}", found=self.kind_of(value), names=" and ".join(silent)
            )
        return value

    def _no_component(self) -> Exception:
        allowed = " and ".join(self.methods)
        return refusal("no_part", f"a {self.noun} must derive from fedsim.Component, with the methods {allowed}")

    def _made(self, value: Any) -> Any:
        """Return how to make the object with state that a scenario's value describes."""
        stateful = _named(self.stateful)
        if isinstance(value, stateful):
            return value
        if not isinstance(value, str | Mapping):
            self._check_methods(value)
            return stateful.of_one(self.kind_of(value), value)
        kind, options = self.split(value)
        factory = self.load(kind)
        own, model = options_table(self.noun, factory)
        check_names(self.noun, options, model.model_fields)
        checked = model.model_validate(numbers_of(self.noun, model, _without_none(options, model.model_fields)))
        chosen = {name: getattr(checked, name) for name in model.model_fields}
        check_bounds(self.noun, model, chosen, own=own)
        try:
            return stateful.of_class(kind, factory, chosen, factory(**chosen))
        except (TypeError, ValueError) as error:
            raise refusal("refused", "{error}", error=error) from error

    def describe(self, value: Any) -> dict[str, Any]:
        """Return the table that `make` turns into this part again."""
        if isinstance(value, Component) and (told := value.described()) is not None:
            return told
        options = value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else {}
        return {"kind": self.kind_of(value), **options, **_chosen_none(value)}

    def split(self, value: str | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return kind and options of a slot's value."""
        if isinstance(value, str):
            return value, {}
        options = {name: plain(one) for name, one in value.items()}
        kind = options.pop("kind", self.default)
        if not isinstance(kind, str):
            raise refusal(
                "no_kind",
                "a {noun} needs a kind; allowed: {names}, or 'module:Class'",
                noun=self.noun,
                names=", ".join(sorted(self.kinds())),
            )
        return kind, options

    def option_names(self, kind: str) -> list[str]:
        """Return the options that a kind takes."""
        found = self.load(kind)
        if inspect.isclass(found) and issubclass(found, BaseModel):
            return list(found.model_fields)
        return list(parameters_of(found))

    def missing_methods(self, found: object) -> list[str]:
        """Return the methods that a class or a part lacks to be of these kinds."""
        missing = [name for name in self.methods if not callable(getattr(found, name, None))]
        return missing + sorted(set(getattr(found, "__abstractmethods__", ())) - set(missing))

    def _check_methods(self, found: Any) -> None:
        if missing := self.missing_methods(found):
            raise refusal(
                "not_a_part",
                "{found} is no {noun}: it has no method {missing}",
                found=with_package(repr(found), (found if isinstance(found, type) else type(found)).__module__),
                noun=self.noun,
                missing=" and no method ".join(missing),
            )
        if "build" in self.methods and not self.foreign and (wrong := other_build(found)):
            raise refusal("not_a_part", "{wrong}", wrong=wrong)


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
    """Return the table of a constructor's options, with their types and defaults."""
    return create_model(title, __config__=_STRICT, **parameters_of(constructor))


_own_table_of: Final[Callable[[str, Any], type[BaseModel]]] = functools.cache(table_of)


def options_table(title: str, factory: Callable[..., Any]) -> tuple[bool, type[BaseModel]]:
    """Return whether a constructor is fedsim's own, and the table of its options, which is then made once."""
    own = is_builtin(factory) if inspect.isclass(factory) else False
    return own, _own_table_of(title, factory) if own else table_of(title, factory)


def _named(place: str) -> Any:
    """Return a class of a room above by its place."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


@dataclass(frozen=True)
class Slot:
    """Annotation of a field that a registry fills: ``fading: Annotated[Fading, Slot(FADINGS)]``."""

    registry: Registry

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self.registry.make, serialization=core_schema.plain_serializer_function_ser_schema(self.registry.describe)
        )

    @classmethod
    def of(cls, metadata: Iterable[object]) -> Self | None:
        """Return the slot among a field's annotations, if it has one."""
        return next((item for item in metadata if isinstance(item, cls)), None)


_NONE: Final = "none"
"""Text for nothing in a file, where something else is the default."""


def _may_be_none(option: FieldInfo) -> bool:
    """Return whether an option may be nothing, and is something by default."""
    kinds = typing.get_args(option.annotation)
    optional = type(None) in kinds and str not in kinds and not option.is_required()
    return optional and (option.default is not None or option.default_factory is not None)


def stated(options: Mapping[str, Any], fields: Mapping[str, FieldInfo]) -> dict[str, Any]:
    """Return options as a file states them: ``"none"`` for nothing where something else is the default."""
    there = {name: one for name, one in options.items() if one is not None}
    nothing = (name for name, one in options.items() if one is None and _may_be_none(fields[name]))
    return {**there, **dict.fromkeys(nothing, _NONE)}


def _without_none(options: Mapping[str, Any], fields: Mapping[str, FieldInfo]) -> dict[str, Any]:
    """Return options with nothing where ``"none"`` says so."""
    said = {name for name, one in options.items() if isinstance(one, str) and one == _NONE and name in fields}
    return {name: None if name in said and _may_be_none(fields[name]) else one for name, one in options.items()}


def _chosen_none(part: object) -> dict[str, str]:
    """Return the options of a part that are nothing where something else is the default."""
    fields = type(part).model_fields if isinstance(part, BaseModel) else {}
    return {name: _NONE for name, option in fields.items() if _may_be_none(option) and getattr(part, name) is None}


def _is_component(found: object) -> bool:
    return inspect.isclass(found) and issubclass(found, Component)


def _states(part: object, name: str) -> bool:
    """Return whether a part has an attribute that is not only the default of `Component`."""
    found = inspect.getattr_static(type(part), name, None)
    return hasattr(part, name) and (found is None or found is not inspect.getattr_static(Component, name, None))


def is_plain(value: object) -> bool:
    """Return whether a value can stand in a TOML file as it is."""
    if isinstance(value, list | tuple):
        return all(is_plain(item) for item in value)
    return value is None or isinstance(value, bool | int | float | str)
