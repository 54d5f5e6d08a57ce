"""The declared checker of one contract: each member with the kind of its answer.

`Contract.checked` puts it around a part of the user's own. A part of fedsim is returned as it is: it keeps its contract
by its tests, and pays for no check.
"""

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from fedsim.answers.guard import RAISED_ON_PURPOSE, failed, place_of_class
from fedsim.answers.kinds import AnswerError, Given, Kind, in_words
from fedsim.arrays import IntArray, read_only
from fedsim.code_digest import is_builtin
from fedsim.errors import PartError
from fedsim.run_setup import RunSetup

T = TypeVar("T")


class Contract:
    """What the members of a kind of parts may return."""

    def __init__(self, noun: str, protocol: type, members: Mapping[str, Kind], inherited: tuple[str, ...] = ()) -> None:
        self.noun, self.protocol, self.members = noun, protocol, dict(members)
        self._inherited = inherited
        self._parameters = {name: _parameters(protocol, name) for name in members}
        self._guarded: dict[type, type[_Guarded]] = {}

    @property
    def methods(self) -> list[str]:
        """Names of the members that are called."""
        return [name for name in self.members if not _is_attribute(self.protocol, name, None)]

    def checked(self, part: T, **known: object) -> T:
        """Return a part whose answers are checked; fedsim's own, and a part that is checked, as it is."""
        kind = type(part)
        if is_builtin(kind):
            return part
        if kind not in self._guarded:
            self._guarded[kind] = self._class_for(kind)
        return cast(T, self._guarded[kind](part, known))

    def _class_for(self, kind: type) -> "type[_Guarded]":
        body: dict[str, Any] = {"__slots__": (), "__doc__": None}
        for name, answer in self.members.items():
            found = inspect.getattr_static(kind, name, None)
            if _is_attribute(self.protocol, name, found):
                body[name] = property(self._method(name, answer, lambda one, read=name: getattr(one._part, read)))
            elif name in self._inherited and is_builtin(_home(kind, name)):
                body[name] = self._method(name, answer, found)
            elif found is not None:
                body[name] = self._method(name, answer)
        for name in self._inherited:
            if name not in self.members and is_builtin(_home(kind, name)):
                body[name] = inspect.getattr_static(kind, name)
        return type(f"Checked{kind.__name__}", (_Guarded,), body)

    def _method(self, name: str, kind: Kind, function: Any = None) -> Callable[..., Any]:
        names = self._parameters[name] or ()

        def method(guarded: _Guarded, /, *arguments: Any, **named: Any) -> Any:
            part = guarded._part
            shown = [read_only(value) if type(value) is np.ndarray else value for value in arguments]
            try:
                answer = (
                    getattr(part, name)(*shown, **named) if function is None else function(guarded, *shown, **named)
                )
                return kind(answer, {**guarded._known, **dict(zip(names, arguments, strict=False)), **named})
            except AnswerError as lie:
                given = {**dict(zip(names, arguments, strict=False)), **named}
                raise self._lie(part, name, lie, given) from None
            except RAISED_ON_PURPOSE:
                raise
            except BaseException as failure:
                given = {**dict(zip(names, arguments, strict=False)), **named}
                raise failed(self.name_of(part), name, failure, clients=_clients(given)) from failure

        return method

    def name_of(self, part: object) -> str:
        return f"{self.noun} {place_of_class(type(part))}"

    def _lie(self, part: object, member: str, lie: AnswerError, given: Mapping[str, Any]) -> PartError:
        error = PartError(f"{self.name_of(part)}.{member} returned {lie.found}", f"allowed: {lie.allowed}")
        error.at = lie.at
        error.name_clients(_clients(given))
        return error


@dataclass(frozen=True)
class PartOf:
    """A part of a type, whose own answers are checked in turn."""

    type: type
    contract: Contract
    none: bool = False

    def __call__(self, answer: object, given: Given) -> Any:
        if answer is None and self.none:
            return None
        part = unchecked(answer)
        missing = [name for name in self.contract.methods if not hasattr(type(part), name)]
        if not isinstance(part, self.type) or (self.type is object and missing):
            home = self.contract.protocol
            allowed = f"a part of type {home.__module__}.{home.__qualname__}"
            raise AnswerError(in_words(answer), f"{allowed}, or None" if self.none else allowed)
        return self.contract.checked(answer, **given)


class _Guarded:
    """A part of the user's own with a declared checker around it; what the contract does not name passes through."""

    __slots__ = ("_known", "_part")

    _part: Any
    _known: Mapping[str, object]

    def __init__(self, part: object, known: Mapping[str, object]) -> None:
        self._part, self._known = part, known

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_part"), name)

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Guarded":
        return type(self)(copy.deepcopy(self._part, memo), self._known)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and bool(self._part == other._part)

    def __hash__(self) -> int:
        return hash(self._part)

    def __repr__(self) -> str:
        return repr(self._part)


def unchecked(part: object) -> object:
    """Return the part itself, without the checker around it."""
    return part._part if isinstance(part, _Guarded) else part


def refuse_uncalled(kind: type, base: type, **told_by: str) -> None:
    """Refuse a class that replaces a method of its base, but not the flag that lets this method be called."""
    for method, flag in told_by.items():
        same = [inspect.getattr_static(kind, name) is inspect.getattr_static(base, name) for name in (method, flag)]
        if same == [False, True]:
            raise ValueError(
                f"{kind.__name__}.{method} is never called, since {flag} is False; allowed: {flag} that is True"
            )


def _is_attribute(protocol: type, name: str, found: object) -> bool:
    """Return whether a member is read, not called: as the protocol declares it, or else as the part has it."""
    declared = inspect.getattr_static(protocol, name, None)
    if declared is None and any(name in inspect.get_annotations(base) for base in protocol.__mro__):
        return True
    return not inspect.isfunction(found if declared is None else declared)


def _parameters(protocol: type, name: str) -> tuple[str, ...] | None:
    """Return the names of a method's parameters; None for an attribute or property."""
    found = inspect.getattr_static(protocol, name, None)
    if not inspect.isfunction(found):
        return None
    return tuple(inspect.signature(found).parameters)[1:]


def _home(kind: type, name: str) -> type:
    """Return the class of a type's bases that defines a member."""
    return next((base for base in kind.__mro__ if name in vars(base)), kind)


def _clients(given: Mapping[str, Any]) -> Sequence[int] | IntArray:
    """Return the clients that a call was about: ids, a run, or the number of all."""
    ids = given.get("client")
    if isinstance(ids, np.ndarray):
        return ids.ravel()
    if isinstance(ids, int | np.integer):
        return [int(ids)]
    run = given.get("run")
    count = run.clients if isinstance(run, RunSetup) else given.get("clients")
    return range(count) if isinstance(count, int) else ()
