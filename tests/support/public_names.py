"""What users read docstrings of: exports, contracts that they derive from, what these hand to them, and kinds."""

import ast
import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
import textwrap
import typing
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from typing import Any, Protocol

from pydantic import BaseModel

import fedsim
from fedsim.answers import Contract
from fedsim.cli.kinds import catalogues
from fedsim.lazy import names_of
from fedsim.learning import TrainingRun
from fedsim.learning.steps.contracts import Message, Sender, StepRun
from fedsim.network.graph.access import AccessRun
from fedsim.rounds.plan import Plan
from fedsim.rounds.run import Run
from fedsim.run_setup import RunSetup
from fedsim.scenario import Scenario

DOORS = ("fedsim", "fedsim.testing", "fedsim.bridges")
HANDED_TO_PARTS = (Plan, Run, RunSetup, TrainingRun, AccessRun, StepRun, Sender, Message)
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_LISTED = ("Parameters", "Attributes")


@dataclass(frozen=True)
class Member:
    """A class or function that is public, or a method or property of one."""

    found: Any
    owner: type | None = None
    is_property: bool = False
    is_bound: bool = False

    @property
    def text(self) -> str:
        return inspect.cleandoc(self.found.__doc__ or "")

    @property
    def home(self) -> str:
        """Where its code is: the same for a method that several classes have."""
        return f"{self.found.__module__}.{self.found.__qualname__}"

    @property
    def parameters(self) -> list[str]:
        """Names of what it is called with, without the object or class itself."""
        try:
            names = list(inspect.signature(self.found).parameters)
        except ValueError:
            return []
        return names[1:] if self.is_bound else names


def exported() -> list[Any]:
    rooms = [importlib.import_module(door) for door in DOORS]
    return [getattr(room, name) for room in rooms for name in names_of(room.__name__)]


@functools.cache
def contracts() -> tuple[Contract, ...]:
    """Return every declared contract, in the order of their nouns."""
    left_out = ("__main__",) if find_spec("flwr") else ("__main__", "fedsim.bridges.flower")
    names = [found.name for found in pkgutil.walk_packages(fedsim.__path__, "fedsim.")]
    names = [name for name in names if not any(part in name for part in left_out)]
    values = [value for name in names for value in vars(importlib.import_module(name)).values()]
    return tuple(
        sorted(
            {value for value in values if isinstance(value, Contract)},
            key=lambda one: (one.noun, one.protocol.__name__),
        )
    )


def kinds() -> list[Any]:
    named = [catalogue.load(kind) for catalogue in catalogues().values() for kind in catalogue.builtin]
    tables: dict[type, None] = {}
    for root in (Scenario, *named):
        _add_tables(root, tables)
    return [*named, *tables]


def _add_tables(annotation: Any, found: dict[type, None]) -> None:
    for part in typing.get_args(annotation):
        _add_tables(part, found)
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel) and annotation not in found:
        found[annotation] = None
        for field in annotation.model_fields.values():
            _add_tables(field.annotation, found)


@functools.cache
def public() -> tuple[Member, ...]:
    wanted = [*exported(), *(contract.protocol for contract in contracts()), *HANDED_TO_PARTS, *kinds()]
    return tuple({Member(value).home: Member(value) for value in wanted if _is_ours(value)}.values())


def bases() -> tuple[Member, ...]:
    found = [base for one in public() if inspect.isclass(one.found) for base in one.found.__mro__]
    return tuple(Member(base) for base in found if _is_ours(base))


@functools.cache
def members() -> tuple[Member, ...]:
    """Return the public methods and properties of exports and contracts; those of kinds keep to a contract."""
    owners = [value for value in exported() if inspect.isclass(value)]
    owners += [contract.protocol for contract in contracts()]
    found: dict[str, Member] = {}
    for owner in owners:
        for base in (base for base in owner.__mro__ if base.__module__.startswith("fedsim")):
            for name, value in vars(base).items():
                code = _code_of(value)
                if code is not None and not name.startswith("_"):
                    read, static = not inspect.isfunction(_bare(value)), isinstance(value, staticmethod)
                    member = Member(code, owner, read, not static)
                    found.setdefault(member.home, member)
    return tuple(found.values())


def sections(text: str) -> dict[str, str]:
    """Return the sections of a docstring by title; the text before the first has the title ''."""
    parts = SECTION.split(text)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def listed(text: str) -> set[str]:
    body = "\n".join(content for title, content in sections(text).items() if title in _LISTED)
    heads = [line.partition(" : ")[0] for line in body.splitlines() if line and not line[0].isspace()]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def texts_of(member: Member) -> list[str]:
    """Return the docstrings that tell of a method: of its class and of the bases."""
    name = member.found.__name__
    told = [base.__dict__[name] for base in member.owner.__mro__ if name in vars(base)]
    return [inspect.cleandoc(code.__doc__ or "") for code in map(_code_of, told) if code is not None]


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
    return Member(found).parameters if own else []


def is_protocol(found: type) -> bool:
    return Protocol in found.__bases__


def raised(member: Member) -> set[str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(member.found)))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
            names.add(node.exc.func.id)
    return names


def _is_ours(value: Any) -> bool:
    return (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("fedsim")


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
