"""Variables of modules and classes that functions of the user's own parts read, and that may be set from elsewhere."""

import inspect
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from fedsim.answers.guard import FAILURES
from fedsim.code_digest import Code, content_digest, is_users
from fedsim.errors import FedsimError

MODULE_VARIABLE: Final = "module variable "
_OF_SCRIPT: Final = f"{MODULE_VARIABLE}__main__:"
_ABSENT: Final = "absent"
_NO_DATA: Final = (BuiltinFunctionType, MethodType, ModuleType, property, classmethod, staticmethod)


def variables_of(codes: Iterable[Code]) -> dict[str, Any]:
    """Return the variables that classes and functions read, by ``module variable parts:RATE``.

    So count those that they name, and functions and classes of the user's which they name, and so on, and functions of
    which decorators and partial calls have made others. What objects keep does not.
    """
    found: dict[str, Any] = {}
    seen, waiting = set[Code](), list(codes)
    while waiting:
        one = waiting.pop()
        if one in seen or not _counts(one.__module__):
            continue
        seen.add(one)
        waiting += one.__bases__ if isinstance(one, type) else ()
        for place, value in _named(one):
            code, held = inspect.unwrap(value) if callable(value) else value, _held_by(value)
            waiting += [inner for inner in (code, *held) if isinstance(inner, Code)]
            if held or (not isinstance(code, Code) and _is_data(value)):
                found[MODULE_VARIABLE + place] = value
    return found


def _held_by(value: object) -> list[object]:
    """Return what a function has in its closure, or a partial call as function and arguments."""
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    cells = (
        zip(value.__code__.co_freevars, value.__closure__ or (), strict=False)
        if isinstance(value, FunctionType)
        else ()
    )
    held = []
    for name, cell in cells:
        with suppress(ValueError):  # of a variable without a value so far
            held += [cell.cell_contents] if name != "__class__" else []
    return held


def told(codes: Iterable[Code]) -> tuple[dict[str, str], bytes]:
    """Return hashes of the variables that classes and functions read, and their values for `take_over`."""
    variables = variables_of(codes)
    return hashes(variables), _carried(variables)


def hashes(variables: Mapping[str, Any]) -> dict[str, str]:
    return {place: content_digest(value) for place, value in variables.items()}


def hash_now(variable: str) -> str:
    """Return the hash of a variable of a module that is loaded."""
    owner, name = _owner(variable)
    return content_digest(vars(owner)[name]) if owner is not None and name in vars(owner) else _ABSENT


def take_over(content: bytes) -> None:
    """Let variables have the values that they have in another process of this run."""
    for variable, pickled in pickle.loads(content).items():  # noqa: S301 - the other end is fedsim too
        try:
            value = pickle.loads(pickled)  # noqa: S301
        except FAILURES as error:
            raise FedsimError(f"{variable}: it cannot be read in a process of its own ({error!r})") from error
        owner, name = _owner(variable)
        if owner is not None and hash_now(variable) != content_digest(value):
            setattr(owner, name, value)


def _carried(variables: Mapping[str, Any]) -> bytes:
    """Return variables as bytes; those of the script go with its own code, and a lock goes nowhere."""
    import cloudpickle

    kept = {}
    for place, value in variables.items():
        with suppress(Exception):
            kept[place] = cloudpickle.dumps(value)
    return pickle.dumps({place: value for place, value in kept.items() if not place.startswith(_OF_SCRIPT)})


def _owner(variable: str) -> tuple[Any, str]:
    """Return the module or class of a variable, None if it is not there, and its name."""
    module, _, path = variable.removeprefix(MODULE_VARIABLE).partition(":")
    owner: Any = sys.modules.get(module)
    *classes, name = path.split(".")
    for step in classes:
        owner = vars(owner).get(step) if owner is not None else None
    return owner, name


def _named(one: Code) -> Iterator[tuple[str, Any]]:
    """Yield what the functions of a class, or a function, name of its module, of modules there, and of the class."""
    own = vars(one) if isinstance(one, type) else {}
    functions = [inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", value))) for value in own.values()]
    functions = [found for found in (one, *functions) if isinstance(found, FunctionType)]
    names = {name for found in functions for name in _names_in(found.__code__)}
    spaces: dict[str, Mapping[str, Any]] = {f"{one.__module__}:{one.__qualname__}.": own} if own else {}
    for found in functions:
        spaces[f"{found.__module__}:"] = found.__globals__
    for space in list(spaces.values()):
        modules = (space[name] for name in names & space.keys() if isinstance(space[name], ModuleType))
        spaces.update((f"{module.__name__}:", vars(module)) for module in modules if _counts(module.__name__))
    for place, space in spaces.items():
        yield from ((place + name, space[name]) for name in sorted(names & space.keys()) if name[:2] != "__")
    yield from (
        (f"{one.__module__}:{one.__qualname__}.{name}", value) for name, value in own.items() if _held_by(value)
    )


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _counts(module: str) -> bool:
    return module == "__main__" or is_users(module)


def _is_data(value: object) -> bool:
    """Return whether a value is no code; objects of libraries that can be called, such as ufuncs, are code."""
    home = type(value).__module__
    return not (isinstance(value, _NO_DATA) or home == "typing" or (callable(value) and not _counts(home)))
