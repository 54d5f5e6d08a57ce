"""Names of a room whose modules are imported on first use, so that a command loads only what it needs."""

import ast
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
    """Return the public names of a room: what it imports as itself, to pass it on, and what it defines."""
    body, found = _tree(room).body, list[str]()
    for node in (*body, *(inner for block in body if isinstance(block, ast.If) for inner in block.body)):
        if isinstance(node, ast.ImportFrom):
            found += [alias.name for alias in node.names if alias.asname == alias.name]
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += [target.id for target in targets if isinstance(target, ast.Name)]
    return sorted(name for name in found if not name.startswith("_"))


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
    blocks = [node.body for node in _tree(room).body if isinstance(node, ast.If)]
    imports = [one for block in blocks for one in block if isinstance(one, ast.ImportFrom)]
    return {alias.name: str(one.module) for one in imports for alias in one.names}


def _tree(room: str) -> ast.Module:
    return ast.parse(Path(str(sys.modules[room].__file__)).read_text(encoding="utf-8"))
