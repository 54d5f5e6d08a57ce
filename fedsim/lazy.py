"""Names of a room whose modules are imported on first use, so that a command loads only what it needs."""

import functools
import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any


def on_use(room: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a room, which takes each name from where its block for type checkers has it."""

    def found(name: str) -> Any:
        if name == "__all__":
            return names_of(room)
        if name.startswith("__") or name not in _places(room):
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        with without_collections():
            return getattr(import_module(_places(room)[name]), name)

    return found


def names_of(room: str) -> list[str]:
    """Return the names that a room imports for type checkers."""
    return sorted(_places(room))


@contextmanager
def without_collections() -> Iterator[None]:
    """Look for no garbage: what is made before a run stays, and walking through torch takes a tenth of a second."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@functools.cache
def _places(room: str) -> Mapping[str, str]:
    """Return the module of each name that a room imports below ``if TYPE_CHECKING``."""
    import ast

    tree = ast.parse(Path(str(sys.modules[room].__file__)).read_text(encoding="utf-8"))
    blocks = [node.body for node in tree.body if isinstance(node, ast.If)]
    imports = [one for block in blocks for one in block if isinstance(one, ast.ImportFrom)]
    return {alias.name: str(one.module) for one in imports for alias in one.names}
