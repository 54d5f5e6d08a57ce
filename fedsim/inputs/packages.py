"""Kinds that installed packages register as entry points, and the package that a class is from."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Final

_OF_MODULES: Final[dict[str, str]] = {}


@dataclass(frozen=True)
class Registered:
    """A kind that installed packages register under one name."""

    places: tuple[str, ...]
    packages: tuple[str, ...]

    def in_words(self) -> str:
        """Return where the kind is from: ``"fedsim-example 1.0"``."""
        return " and ".join(self.packages)


def registered(group: str) -> Mapping[str, Registered]:
    """Return what installed packages register in a group, by name."""
    found: dict[str, dict[str, str]] = {}
    for point in entry_points(group=group):
        package = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
        found.setdefault(point.name, {}).setdefault(point.value, package)
    return {name: Registered(tuple(places), tuple(places.values())) for name, places in found.items()}


def note_package(module: str, package: str) -> None:
    """Note the package that a module is from, for messages about its classes."""
    _OF_MODULES[module.partition(".")[0]] = package


def with_package(name: str, module: str) -> str:
    """Return the name of a class with the package that it is from: ``"sats:Links (package fedsim-sats 1.0)"``."""
    package = _OF_MODULES.get(module.partition(".")[0])
    return name if package is None else f"{name} (package {package})"
