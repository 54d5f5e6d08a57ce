"""What users may import: the names of `fedsim` and of its rooms, with their members and what their docstrings say."""

import ast
import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
import sys
import textwrap
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from pydantic import BaseModel

import fedsim
from fedsim.answers import Contract

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_LISTED = ("Parameters", "Attributes")


@dataclass(frozen=True)
class Member:
    """A function, a class, or a method or property of a class.

    Attributes
    ----------
    place : how it is named: ``"fedsim.History.plot"``
    found : function or class; of a property the function that reads it
    owner : class whose member it is; None for others
    is_property : whether it is read, not called
    is_bound : whether its first argument is the object or class that it belongs to
    """

    place: str
    found: Any
    owner: type | None = None
    is_property: bool = False
    is_bound: bool = False

    @property
    def text(self) -> str:
        """Its own docstring."""
        return inspect.cleandoc(self.found.__doc__ or "")

    @property
    def home(self) -> str:
        """Where its code is: the same for a name that two rooms export, and for a method of several classes."""
        return f"{self.found.__module__}.{self.found.__qualname__}"

    @property
    def parameters(self) -> list[str]:
        """Names of what it is called with, without the object or class itself."""
        try:
            names = list(inspect.signature(self.found).parameters)
        except ValueError:
            return []
        return names[1:] if self.is_bound else names


def rooms() -> list[str]:
    """Return the modules whose names are public: fedsim itself, and what stands directly in it and says so."""
    below = [f"fedsim.{found.name}" for found in pkgutil.iter_modules(fedsim.__path__) if found.name != "__main__"]
    return ["fedsim", *(name for name in below if hasattr(importlib.import_module(name), "__all__"))]


@functools.cache
def public() -> tuple[Member, ...]:
    """Return every function and class that `fedsim` or one of its rooms exports, each once."""
    found: dict[str, Member] = {}
    for room in rooms():
        module = importlib.import_module(room)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                member = Member(f"{room}.{name}", value)
                if member.home.startswith("fedsim."):
                    found.setdefault(member.home, member)
    return tuple(found.values())


@functools.cache
def members() -> tuple[Member, ...]:
    """Return the public methods and properties of all public classes, those of fedsim's own base classes included."""
    found: dict[str, Member] = {}
    for one in public():
        for base in one.found.__mro__ if inspect.isclass(one.found) else ():
            if not base.__module__.startswith("fedsim"):
                continue
            for name, value in vars(base).items():
                code = _code_of(value)
                if code is not None and not name.startswith("_"):
                    read, static = not inspect.isfunction(_bare(value)), isinstance(value, staticmethod)
                    member = Member(f"{one.place}.{name}", code, one.found, read, not static)
                    found.setdefault(member.home, member)
    return tuple(found.values())


def sections(text: str) -> dict[str, str]:
    """Return the sections of a docstring by title; the text before the first has the title ''."""
    parts = _SECTION.split(text)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def listed(text: str) -> set[str]:
    """Return the names that a docstring lists under Parameters and Attributes."""
    body = "\n".join(content for title, content in sections(text).items() if title in _LISTED)
    heads = [line.partition(" : ")[0] for line in body.splitlines() if line and not line[0].isspace()]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def texts_of(member: Member) -> list[str]:
    """Return the docstrings that tell of a method: of its class, of the bases, and of the contract that it fulfils."""
    name = member.found.__name__
    told = [base.__dict__[name] for base in member.owner.__mro__ if name in vars(base)]
    told += [base.__dict__[name] for contract in contracts() for base in contract.__mro__ if name in vars(base)]
    return [inspect.cleandoc(code.__doc__ or "") for code in map(_code_of, told) if code is not None]


@functools.cache
def contracts() -> tuple[type, ...]:
    """Return the classes that declare contracts of parts; what they say of a member holds for each part."""
    rooms()
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("fedsim.")]
    values = [value for module in modules for value in vars(module).values()]
    declared = [value.protocol for value in values if isinstance(value, Contract)]
    protocols = [value for value in values if inspect.isclass(value) and is_protocol(value)]
    return tuple(dict.fromkeys([*declared, *(found for found in protocols if found.__module__.startswith("fedsim."))]))


def fields_of(found: type) -> list[str]:
    """Return what an object of a class is made of: fields of settings and records, or arguments of its constructor."""
    if issubclass(found, BaseModel):
        return list(found.model_fields)
    if issubclass(found, Enum | BaseException) or is_protocol(found):
        return []
    if dataclasses.is_dataclass(found):
        return [field.name for field in dataclasses.fields(found) if not field.name.startswith("_")]
    if issubclass(found, tuple):
        return list(getattr(found, "_fields", ()))
    own = any("__init__" in vars(base) for base in found.__mro__ if base.__module__.startswith("fedsim"))
    return Member("", found).parameters if own else []


def is_protocol(found: type) -> bool:
    """Return whether a class declares what others have."""
    return Protocol in found.__bases__


def raised(member: Member) -> set[str]:
    """Return the names of the errors that a function raises in its own lines."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(member.found)))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
            names.add(node.exc.func.id)
    return names


def _bare(value: Any) -> Any:
    return value.__func__ if isinstance(value, classmethod | staticmethod) else value


def _code_of(value: Any) -> Any:
    """Return the function behind a member of a class; None for what is no method and no property."""
    if isinstance(value, property):
        return value.fget
    if isinstance(value, functools.cached_property):
        return value.func
    bare = _bare(value)
    return bare if inspect.isfunction(bare) else None
