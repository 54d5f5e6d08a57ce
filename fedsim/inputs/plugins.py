"""Classes that are not fedsim's own: those that a scenario names as ``module:Class``, and those of installed packages.

To import a module is to run it. Only what a scenario names is imported, and nothing in `without_plugins`.
"""

import difflib
import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

_ALLOWED: Final[ContextVar[bool]] = ContextVar("plug-ins are allowed", default=True)
_IMPORTED: Final[dict[str, str]] = {}
_PACKAGES: Final[dict[str, str]] = {}


class PluginError(Exception):
    """A class cannot be loaded; the message says why and what is allowed."""


@dataclass(frozen=True)
class Registered:
    """A kind that installed packages register under one name."""

    places: tuple[str, ...]
    packages: tuple[str, ...]

    def in_words(self) -> str:
        """Return where the kind is from: ``"fedsim-example 1.0"``."""
        return " and ".join(self.packages)


def registered(group: str) -> Mapping[str, Registered]:
    found: dict[str, dict[str, str]] = {}
    path = tuple((folder, Path(folder).stat().st_mtime) for folder in sys.path if Path(folder).exists())
    for point in _installed(path).select(group=group):
        package = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
        found.setdefault(point.name, {}).setdefault(point.value, package)
    return {name: Registered(tuple(places), tuple(places.values())) for name, places in found.items()}


@lru_cache(maxsize=1)
def _installed(_path: tuple[tuple[str, float], ...]) -> Any:
    """Return the entry points of all packages in these folders, which takes a twentieth of a second."""
    return entry_points()


def with_package(name: str, module: str) -> str:
    """Return the name of a class with the package that it is from: ``"sats:Links (package fedsim-sats 1.0)"``."""
    package = _PACKAGES.get(module.partition(".")[0])
    return name if package is None else f"{name} (package {package})"


def look_in(folders: Iterable[str | Path]) -> None:
    """Let modules be found in further folders, at the end of the path, so that no installed package is hidden."""
    sys.path += [folder for folder in map(str, folders) if folder not in sys.path]


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


def load_kind(group: str, kind: str) -> Any:
    """Return what ``"module:Class"`` or an entry point names; None where no package registers the kind."""
    installed = Registered((kind,), ("",)) if ":" in kind else registered(group).get(kind)
    if installed is None:
        return None
    if len(installed.places) > 1:
        allowed = " or ".join(map(repr, installed.places))
        raise PluginError(f"{kind!r} is registered by {' and by '.join(installed.packages)}; allowed: {allowed}")
    place, package = installed.places[0], installed.packages[0]
    try:
        found = load_plugin(place)
    except PluginError as error:
        of = f" of the installed package {package}" if package else ""
        raise PluginError(f"{place!r}{of} cannot be loaded: {error}") from error
    if package:
        _PACKAGES[place.partition(":")[0].partition(".")[0]] = package
    return found


def load_plugin(place: str) -> Any:
    module, _, name = place.partition(":")
    if not all(step.isidentifier() for step in (*module.split("."), *name.split("."))):
        raise PluginError("it is not of the form 'module:Class' with the whole name of a module")
    if not _ALLOWED.get():
        raise PluginError(
            "--no-plugins is given, so nothing that a file names is imported; allowed: fedsim's own kinds"
        )
    found: Any = sys.modules.get(module) or _imported(module)
    for step in name.split("."):
        if not hasattr(found, step):
            close = difflib.get_close_matches(step, dir(found), n=1, cutoff=0.5)
            raise PluginError(f"{module!r} has no {name!r}{f' (did you mean {close[0]!r}?)' if close else ''}")
        found = getattr(found, step)
    return found


def _imported(module: str) -> Any:
    """Import a module, turning whatever it does to stop that into an error."""
    if module.rpartition(".")[2] == "__main__":
        raise PluginError(f"{module!r} is a program, which runs when it is imported; name the module of the class")
    try:
        imported = importlib.import_module(module)
    except KeyboardInterrupt:
        raise
    except SystemExit as stop:
        raise PluginError(f"{module!r} ends the program when it is imported (exit code {stop.code!r})") from None
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            raise PluginError(
                f"there is no module {error.name!r}; allowed: one that Python can import from here"
            ) from None
        reason = " ".join(str(error).split()) or "no reason"
        raise PluginError(f"{module!r} fails when it is imported: {type(error).__name__}: {reason[:200]}") from error
    _IMPORTED[module] = str(getattr(imported, "__file__", None) or "a file unknown")
    return imported
