"""Parts that are no `fedsim.Component`: classes and functions that a file names, and objects handed over in Python.

A registry that takes them has a child of `Foreign`, which makes the part that a scenario asks for of what it was given.
Objects of some keep state, as selectors do: each run has a new one.
"""

import copy
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final, Self

from pydantic import PrivateAttr

from fedsim.answers import asked
from fedsim.code_digest import Code, content_digest
from fedsim.inputs.quantities import plain
from fedsim.registry import Component, is_plain, options_table, parameters_of as options_of, stated

_SHOWN: Final = 100


class Held:
    """What a part stands for; parts are compared by what their tables say of it, not by itself."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held)

    def __hash__(self) -> int:
        return hash(Held)


class Foreign(Component):
    """A part made of something else."""

    reads: ClassVar[frozenset[str]] = frozenset()
    """Names of options that are about the part, where the class or function has no parameter of that name."""

    place: str
    options: Mapping[str, Any] = {}
    content: str = ""
    _held: Held = PrivateAttr(default_factory=lambda: Held(None))

    @classmethod
    def of_place(cls, place: str, found: Any, options: Mapping[str, Any]) -> Self:
        """Return the part that a class or function makes with options, which are not tried yet."""
        part = cls.holding(found, place, options)
        check_call(place, found, part.for_call)
        return part

    @classmethod
    def of_object(cls, value: Any) -> Self:
        """Return the part that an object makes; `ValueError` for one of which none can be made."""
        raise NotImplementedError

    @classmethod
    def holding(cls, found: Any, place: str, options: Mapping[str, Any] | None = None, content: str = "") -> Self:
        """Return a part that holds something."""
        part = cls(place=place, options=dict(options or {}), content=content)
        part._held = Held(found)
        return part

    @property
    def found(self) -> Any:
        return self._held.found

    @property
    def for_call(self) -> dict[str, Any]:
        """The options with which the class or function is called."""
        own = self.reads.difference(parameters_of(self.found)) if self.reads and callable(self.found) else ()
        return {name: value for name, value in self.options.items() if name not in own}

    @property
    def stands_for(self) -> object:
        """The class or function whose code counts; None for an object, whose content counts."""
        return None if self.content else code_of(self.found)

    def codes(self) -> Iterable[Code]:
        """Return the classes and functions that a process needs to make the part again."""
        code = code_of(self.found)
        return [code] if isinstance(code, Code) else []

    def described(self) -> dict[str, Any]:
        """Return the table that names it; an object has its digest there, and no table makes it again."""
        return {"kind": self.place, "object": self.content} if self.content else {"kind": self.place, **self.options}

    def called(self, noun: str, **known: Any) -> Any:
        """Return what the class or function gives with the options."""
        names, options = parameters_of(self.found), self.for_call
        more = {name: value for name, value in known.items() if name in names and name not in options}
        call = functools.partial(self.found, **options, **more)
        return asked(f"{noun} {self.place}", "__init__" if inspect.isclass(self.found) else "__call__", call)


class Same(Held):
    """What parts are compared by themselves."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and bool(self.found == other.found)

    def __hash__(self) -> int:
        return hash(Same)


class Stateful(Foreign):
    """How to make an object that keeps state: of a class and its options, or as a copy of an object.

    Attributes
    ----------
    place : kind of the class
    options : of the class; none where an object is copied
    content : digest of an object that is copied; empty where it is made of options
    """

    @classmethod
    def of_class(cls, kind: str, factory: Callable[..., Any], options: Mapping[str, Any], made: object) -> Self:
        """Return what makes objects of a class; where options have no text, copies of one that was made with them."""
        if not all(map(is_plain, options.values())):
            return cls._copying(kind, made)
        part = cls(place=kind, options=dict(options))
        part._held = Same(factory)
        return part

    @classmethod
    def of_one(cls, kind: str, value: Any) -> Self:
        """Return what makes an object anew, of the arguments that are among its attributes, or else as a copy."""
        factory = type(value)
        options = {name: plain(getattr(value, name, ...)) for name in options_of(factory)}
        if _are_named(factory) and all(map(is_plain, options.values())):
            with suppress(Exception):  # of a constructor that makes other attributes of its arguments
                again = factory(**options)
                if all(plain(getattr(again, name)) == option for name, option in options.items()):
                    return cls.of_class(kind, factory, options, again)
        return cls._copying(kind, value)

    @classmethod
    def _copying(cls, kind: str, made: object) -> Self:
        part = cls(place=kind, content=content_digest(made))
        try:
            part._held = Same(copy.deepcopy(made))
        except Exception as error:
            raise ValueError(
                f"{place_of(made)}: its constructor arguments are not among its attributes, and it cannot be copied "
                f"({error}); allowed: a class that keeps each argument under its own name, or that can be copied"
            ) from error
        return part

    @property
    def kind(self) -> str:
        return self.place

    @property
    def stands_for(self) -> Any:
        """The class whose code counts."""
        return code_of(self.found)

    def build(self) -> Any:
        """Return a new object in its initial state."""
        return copy.deepcopy(self.found) if self.content else self.found(**self.options)

    def described(self) -> dict[str, Any]:
        if self.content:
            return super().described()
        return {"kind": self.place, **stated(self.options, options_table(self.place, self.found)[1].model_fields)}


def code_of(found: Any) -> object:
    """Return the class or function whose code a class, function, partial call or object stands for."""
    while isinstance(found, functools.partial):
        found = found.func
    return found if inspect.isclass(found) or inspect.isfunction(found) else type(found)


def place_of(found: Any) -> str:
    """Return ``"module:Name"`` of the class or function that something stands for."""
    code: Any = code_of(found)
    return f"{code.__module__}:{code.__qualname__}"


def parameters_of(found: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a call; none where Python cannot tell them."""
    try:
        return inspect.signature(found).parameters
    except (TypeError, ValueError):
        return {}


def required_of(found: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters without which a call fails."""
    return [
        name
        for name, one in parameters_of(found).items()
        if one.default is one.empty and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY, one.POSITIONAL_ONLY)
    ]


def _are_named(factory: type[Any]) -> bool:
    """Return whether each argument of a constructor has a name; those of `object` and of protocols take none."""
    own: Any = factory.__init__
    if own == object.__init__ or own.__module__ == "typing":
        return True
    kinds = [one.kind for one in inspect.signature(own).parameters.values()][1:]
    return all(one in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY) for one in kinds)


def check_call(place: str, found: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options for which a class or function has no parameters."""
    if not callable(found):
        raise ValueError(f"{place} is {repr(found)[:_SHOWN]}; it must be a class or a function")
    known = parameters_of(found)
    if any(one.kind is one.VAR_KEYWORD for one in known.values()):
        return
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ValueError(f"{place} has no parameter {unknown[0]!r}; allowed: {', '.join(known) or 'none'}")
