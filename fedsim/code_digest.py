"""Digests of users' code, so that two classes of one name are two parts, and of objects that they hand over.

The digest covers the module of the class, those of its base classes, and each of the user's other modules that these
import, all of them whole: what a class uses of its module cannot be told in general. Parts of fedsim, of the standard
library and of other installed packages count with their names.

A class whose source cannot be read, or differs from what was loaded, has a digest that holds in its process only. An
object's digest is that of its attributes, and of the code of classes and functions among them.
"""

import ast
import functools
import hashlib
import importlib.util
import inspect
import io
import itertools
import os
import pickle
import secrets
import sys
import sysconfig
import tokenize
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final
from uuid import uuid4
from weakref import WeakKeyDictionary

_OWN: Final = __name__.partition(".")[0]
_PATHS: Final = str(Path(__file__).parent), *map(sysconfig.get_path, ("stdlib", "purelib", "platlib"))
_INSTALLED: Final = frozenset(Path(place).resolve() for place in _PATHS)

Code = type | FunctionType


@dataclass(frozen=True)
class CodeDigest:
    """The digest of a class's code, and why it holds in this process only, if it does."""

    text: str
    unreadable: str = ""


class _UnreadableError(Exception):
    pass


@dataclass(frozen=True, eq=False)
class _Source:
    module: str
    text: str
    tree: ast.Module


_KNOWN: Final[WeakKeyDictionary[Code, CodeDigest]] = WeakKeyDictionary()
_PROCESS: Final = secrets.token_hex(8)
_NUMBERS: Final = itertools.count(1)


def is_builtin(found: Code) -> bool:
    return found.__module__.partition(".")[0] == _OWN


def is_users(module: str) -> bool:
    """Return whether a module with a file is the user's: not fedsim's, of the standard library, or installed."""
    top = module.partition(".")[0]
    if top in (_OWN, *sys.stdlib_module_names):
        return False
    # To look for a submodule imports its package, which is not to happen for an installed one.
    of_package = _file_of(top)
    if of_package is not None and not is_users_file(of_package):
        return False
    file = _file_of(module)
    return file is not None and is_users_file(file)


def is_users_file(file: str) -> bool:
    """Return whether a file lies outside of fedsim, the standard library and installed packages."""
    return _INSTALLED.isdisjoint(Path(file).resolve().parents)


def folder_of(found: Code) -> str | None:
    """Return the folder from which a user's module of a class is imported; None for a program, or an installed one."""
    top = found.__module__.partition(".")[0]
    file = None if top == "__main__" or not is_users(top) else _file_of(top)
    if file is None:
        return None
    home = Path(file).resolve().parent
    return str(home.parent if Path(file).stem == "__init__" else home)


def code_digest(found: Code) -> CodeDigest:
    """Return the digest of a user's class or function, which the first call computes."""
    if found not in _KNOWN:
        try:
            _KNOWN[found] = CodeDigest(_digest(found))
        except _UnreadableError as error:
            _KNOWN[found] = CodeDigest(f"{_PROCESS}-{os.getpid()}-{next(_NUMBERS)}", str(error))
    return _KNOWN[found]


def _digest(found: Code) -> str:
    home = found.__module__.partition(".")[0]
    source, codes = functools.cache(_source_of), functools.cache(_codes_of)  # of this call: files change
    texts: dict[str, str] = {}
    waiting: list[str] = []
    for base in found.__mro__ if isinstance(found, type) else (found,):
        if base is found or _counts(base.__module__, home):
            _check_loaded(base, codes(source(base.__module__)))
            waiting.append(base.__module__)
    while waiting:
        module = waiting.pop()
        if module not in texts:
            texts[module] = source(module).text
            waiting += _imports(module, source(module).tree, home)
    digest = hashlib.blake2b(digest_size=16)
    for part in itertools.chain.from_iterable(sorted(texts.items())):
        digest.update(f"{len(part)}:".encode() + part.encode())
    return digest.hexdigest()


def _counts(module: str, home: str) -> bool:
    """Return whether a module is of the part's own package, which may be an installed plug-in, or else the user's."""
    if module.partition(".")[0] == home not in (_OWN, *sys.stdlib_module_names):
        return _file_of(module) is not None
    return is_users(module)


def _imports(module: str, tree: ast.Module, home: str) -> Iterator[str]:
    """Yield the modules that count among those that a module imports, at its top or within its functions."""
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _counts(alias.name, home))
        elif isinstance(node, ast.ImportFrom):
            try:
                origin = importlib.util.resolve_name("." * node.level + (node.module or ""), _package_of(module))
            except ImportError:  # for where the module is part of a package, which it is not here
                continue
            if not _counts(origin, home):
                continue
            yield origin
            if Path(_file_of(origin) or "").stem == "__init__":
                inner = (f"{origin}.{alias.name}" for alias in node.names)
                yield from (name for name in inner if _counts(name, home))


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements below a node, and what groups them: to walk through expressions takes four times as long."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield node
            yield from _statements(node)


def _file_of(module: str) -> str | None:
    """Return the file of a module, loaded or not; None if it has none."""
    if module in sys.modules:
        return getattr(sys.modules[module], "__file__", None)
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None
    return spec.origin if spec is not None and spec.has_location else None


def _package_of(module: str) -> str:
    """Return the package from which a module's relative imports start."""
    if module in sys.modules:
        return getattr(sys.modules[module], "__package__", None) or ""
    spec = importlib.util.find_spec(module)
    return "" if spec is None else spec.parent or ""


def _source_of(module: str) -> _Source:
    try:
        with tokenize.open(_file_of(module) or "") as file:
            text = file.read()
        return _Source(module, text, ast.parse(text))
    except (OSError, SyntaxError, ValueError):
        raise _unreadable(module) from None


def _codes_of(source: _Source) -> set[CodeType]:
    try:
        return set(_codes(compile(source.tree, "source", "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        raise _unreadable(source.module) from None


def _unreadable(module: str) -> _UnreadableError:
    return _UnreadableError(f"the source of module {module!r} cannot be read")


def _check_loaded(found: Code, codes: set[CodeType]) -> None:
    """Refuse a class or function that is not the one that the source of its module defines."""
    where = f"{found.__module__}:{found.__qualname__}"
    module = sys.modules.get(found.__module__)
    at: object = module
    for step in found.__qualname__.split("."):
        at = getattr(at, step, None)
    if at is not found or all(code.co_qualname != found.__qualname__ for code in codes):
        raise _UnreadableError(f"{where} was made while the program ran")
    if not isinstance(getattr(module, "__loader__", None), SourceFileLoader):
        return
    for value in vars(found).values() if isinstance(found, type) else (found,):
        function = inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", value)))
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType) and code.co_filename == _file_of(found.__module__) and code not in codes:
            raise _UnreadableError(f"the source of {where} has changed since it was loaded")


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def content_digest(value: object, pickler: "type[ContentPickler] | None" = None) -> str:
    """Return a digest of an object; of what cannot be pickled another at each call."""
    pickled = io.BytesIO()
    try:
        (pickler or ContentPickler)(pickled, protocol=5).dump(value)
    except Exception:  # whatever a class of the user's raises
        pickled.write(uuid4().bytes)
    return hashlib.blake2b(pickled.getvalue(), digest_size=16).hexdigest()


class ContentPickler(pickle._Pickler):
    """Pickles values for a digest: code by its text, equal values alike."""

    def reducer_override(self, value: Any) -> Any:
        if value is stand_in:
            return NotImplemented
        if isinstance(value, set | frozenset):  # its order changes from process to process
            return stand_in, (sorted(value, key=repr),)
        if inspect.isclass(value) or inspect.isfunction(value):
            users = value.__module__ == "__main__" or is_users(value.__module__)
            cells = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
            code = code_digest(value).text if users else ""
            return stand_in, (f"{value.__module__}:{value.__qualname__}", code, cells)
        return (stand_in, (value(),)) if isinstance(value, weakref.ref) else NotImplemented

    def memoize(self, obj: Any) -> None:
        """Write equal texts alike, whether they are one object or several."""
        if type(obj) not in (str, bytes, tuple):
            super().memoize(obj)  # type: ignore[misc]


def stand_in(*_: Any) -> None:
    """Stand for what is pickled."""
