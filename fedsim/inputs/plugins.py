"""Classes that a file names as ``module:Class``: looked up in the source first, and imported only if they are there.

To import a module is to run it. So the source of a module is read before, without running anything, and the module is
imported only if it defines the class, or imports it by name from one that does. A module that is made to be run, such
as ``package.__main__``, is refused.
"""

import ast
import difflib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any, Final

from fedsim.inputs.packages import Registered, note_package, registered

_MOST_STEPS: Final = 20
"""Modules that import a class from one another."""

_ALLOWED: Final[ContextVar[bool]] = ContextVar("plug-ins are allowed", default=True)
_IMPORTED: Final[dict[str, str]] = {}


class PluginError(Exception):
    """A class cannot be loaded; the message says why and what is allowed."""


@contextmanager
def without_plugins() -> Iterator[None]:
    """Refuse every class that a file names, and import nothing for it, in this context."""
    token = _ALLOWED.set(False)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def imported_plugins() -> dict[str, str]:
    """Return the modules that were imported because a file names a class of theirs, with their files."""
    return dict(_IMPORTED)


def load_kind(group: str, kind: str, *, functions: bool = False) -> Any:
    """Return what a kind names that is not fedsim's: ``"module:Class"``, or the name of an installed package's part."""
    installed = Registered((kind,), ("",)) if ":" in kind else registered(group).get(kind)
    if installed is None:
        return None
    if len(installed.places) > 1:
        allowed = " or ".join(map(repr, installed.places))
        raise PluginError(f"{kind!r} is registered by {' and by '.join(installed.packages)}; allowed: {allowed}")
    place, package = installed.places[0], installed.packages[0]
    try:
        return load_plugin(place, package=package, functions=functions)
    except PluginError as error:
        of = f" of the installed package {package}" if package else ""
        raise PluginError(f"{place!r}{of} cannot be loaded: {error}") from error


def load_plugin(place: str, *, package: str = "", functions: bool = False) -> Any:
    """Return what ``"module:Class"`` names, importing its module."""
    module, _, name = place.partition(":")
    if not all(step.isidentifier() for step in (*module.split("."), *name.split("."))):
        raise PluginError("it is not of the form 'module:Class' with the whole name of a module")
    if not _ALLOWED.get():
        raise PluginError(
            "--no-plugins is given, so nothing that a file names is imported; allowed: fedsim's own kinds"
        )
    if sys.modules.get(module) is None:
        if module.rpartition(".")[2] == "__main__":
            raise PluginError(f"{module!r} is a program, which runs when it is imported; name the module of the class")
        if not package:
            _check_defined(module, name.partition(".")[0], functions=functions)
        _import(module)
    if package:
        note_package(module, package)
    found: Any = sys.modules[module]
    for step in name.split("."):
        if not hasattr(found, step):
            raise PluginError(f"{module!r} has no {name!r}")
        found = getattr(found, step)
    return found


def _import(module: str) -> None:
    """Import a module, turning whatever it does to stop that into an error."""
    try:
        imported = importlib.import_module(module)
    except KeyboardInterrupt:
        raise
    except SystemExit as stop:
        raise PluginError(f"{module!r} ends the program when it is imported (exit code {stop.code!r})") from None
    except BaseException as error:
        reason = " ".join(str(error).split()) or "no reason"
        raise PluginError(f"{module!r} fails when it is imported: {type(error).__name__}: {reason[:200]}") from error
    _IMPORTED[module] = str(getattr(imported, "__file__", None) or "a file unknown")


@dataclass(frozen=True)
class _Bound:
    """What the source of a module says of its names."""

    classes: frozenset[str]
    functions: frozenset[str]
    origins: dict[str, tuple[str, str]]


def _check_defined(module: str, name: str, *, functions: bool) -> None:
    """Refuse a class that the source of a module neither defines nor imports from a module that does."""
    at, wanted = module, name
    for _ in range(_MOST_STEPS):
        if at in sys.modules:
            return
        bound = _bound(at)
        if wanted in bound.classes or (functions and wanted in bound.functions):
            return
        if wanted not in bound.origins:
            close = difflib.get_close_matches(name, [*bound.classes, *bound.origins], n=1, cutoff=0.5)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise PluginError(
                f"{module!r} defines no class {name!r}{hint}, so it is not imported; allowed: a class that stands in "
                "the module, or that it imports by name"
            )
        at, wanted = bound.origins[wanted]
    raise PluginError(f"{module!r} and others import {name!r} from one another in a circle")


def _bound(module: str) -> _Bound:
    spec = _spec(module)
    text = None
    try:
        if isinstance(spec.loader, InspectLoader):
            text = spec.loader.get_source(module)
        if text is None:
            raise PluginError(f"{module!r} has no source of Python, so it is not imported; allowed: a module with one")
        tree = ast.parse(text)
    except (ImportError, OSError, ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise PluginError(f"the source of {module!r} cannot be read: {error}") from None
    classes: set[str] = set()
    functions: set[str] = set()
    origins: dict[str, tuple[str, str]] = {}
    package = module if spec.submodule_search_locations is not None else module.rpartition(".")[0]
    for node in _statements(tree.body):
        if isinstance(node, ast.ClassDef):
            classes.add(node.name)
        elif isinstance(node, ast.FunctionDef):
            functions.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call | ast.Name | ast.Attribute):
            classes |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(node, package)
            origins.update({alias.asname or alias.name: (origin, alias.name) for alias in node.names})
    return _Bound(frozenset(classes), frozenset(functions), origins)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, those within ``if``, ``try`` and ``with`` included."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _statements(node.body + node.orelse)
        elif isinstance(node, ast.Try):
            handled = [inner for handler in node.handlers for inner in handler.body]
            yield from _statements(node.body + handled + node.orelse + node.finalbody)


def _origin(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    base = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def _spec(module: str) -> ModuleSpec:
    """Return where a module is, without importing the packages that hold it."""
    first, *steps = module.split(".")
    try:
        spec, at = importlib.util.find_spec(first), first
        for step in steps:
            if spec is None:
                break
            at = f"{at}.{step}"
            within = spec.submodule_search_locations
            spec = None if within is None else PathFinder.find_spec(at, list(within))
    except (ImportError, ValueError, AttributeError, OSError) as error:
        raise PluginError(f"{module!r} cannot be found: {error}") from None
    if spec is None:
        raise PluginError(f"there is no module {at!r}; allowed: one that Python can import from here")
    return spec
