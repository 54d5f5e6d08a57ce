"""Names of a room whose modules are imported on first use, so that a command loads only what it needs."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_use(room: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a room, which takes each name from the module that ``places`` has for it."""

    def found(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return found
