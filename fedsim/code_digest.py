"""Digests of the source of users' classes and functions, so that two classes of one name are two parts.

The digest covers the class, its own base classes, and the functions, classes and constants of its module that they use,
directly or through one another. Where that cannot be told (a star import, ``globals()``) the whole module counts, and
so does each of the user's other modules from which any of it imports. Parts of fedsim, of the standard library and of
other installed packages count with their names.

A class whose source cannot be read, or differs from what was loaded, has a digest that holds in its process only.
"""

import ast
import hashlib
import importlib.util
import inspect
import itertools
import os
import secrets
import sys
import sysconfig
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

_OWN: Final = __name__.partition(".")[0]
_INSTALLED: Final = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib"))
_OPAQUE: Final = {"globals", "vars", "eval", "exec", "__import__", "import_module"}
"""Calls by which code can reach whatever its module holds."""


Code = type | FunctionType


@dataclass(frozen=True)
class CodeDigest:
    """What stands for a class's code."""

    text: str
    unreadable: str = ""


class _UnreadableError(Exception):
    """The source of a class or module cannot be read."""


_KNOWN: Final[WeakKeyDictionary[Code, CodeDigest]] = WeakKeyDictionary()
_PROCESS: Final = secrets.token_hex(8)
_NUMBERS: Final = itertools.count(1)


def is_builtin(found: Code) -> bool:
    """Return whether a class or function is fedsim's own."""
    return found.__module__.partition(".")[0] == _OWN


def is_users(module: str) -> bool:
    """Return whether a module with a file is the user's: not fedsim's, of the standard library, or installed."""
    file = _file_of(module)
    if file is None or module.partition(".")[0] in (_OWN, *sys.stdlib_module_names):
        return False
    return is_users_file(file)


def is_users_file(file: str) -> bool:
    """Return whether a file lies outside of fedsim, the standard library and installed packages."""
    return not any(place in Path(file).resolve().parents for place in (*_INSTALLED, Path(__file__).resolve().parent))


def code_digest(found: Code) -> CodeDigest:
    """Return the digest of a user's class or function; the first call reads its source, later ones recall it."""
    if found not in _KNOWN:
        try:
            _KNOWN[found] = CodeDigest(_Sources(found).digest())
        except _UnreadableError as error:
            _KNOWN[found] = CodeDigest(f"{_PROCESS}-{os.getpid()}-{next(_NUMBERS)}", str(error))
    return _KNOWN[found]


class _Sources:
    """The statements that a class is made of, by module, collected from the class outwards."""

    def __init__(self, found: Code) -> None:
        self._home = found.__module__.partition(".")[0]
        self._chosen: dict[str, set[int]] = {}
        for base in found.__mro__ if isinstance(found, type) else (found,):
            if base is found or self._is_users(base.__module__):
                _check_loaded(base)
                self._add(base.__module__, {base.__qualname__.partition(".")[0]})

    def digest(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for module, chosen in sorted(self._chosen.items()):
            statements = _statements(_text_of(module))
            for part in (module, *(statements[number].text for number in sorted(chosen))):
                digest.update(f"{len(part)}:".encode() + part.encode())
        return digest.hexdigest()

    def _add(self, module: str, names: set[str] | None) -> None:
        """Take in what a module says of names, and all that this uses; the whole module where they are None."""
        chosen, statements = self._chosen.setdefault(module, set()), _statements(_text_of(module))
        if any("*" in each.names for each in statements):
            names = None
        fresh = {number for number, each in enumerate(statements) if names is None or each.names & names} - chosen
        if any(statements[number].uses & _OPAQUE for number in fresh):
            fresh = set(range(len(statements))) - chosen
        chosen |= fresh
        for number in fresh:
            for imported in _imports(statements[number].node, module):
                if self._is_users(imported):
                    self._add(imported, None)
        if fresh:
            self._add(module, set().union(*(statements[number].uses for number in fresh)))

    def _is_users(self, module: str) -> bool:
        """Return whether a module is the user's: of the part's own package, or installed nowhere."""
        if module.partition(".")[0] == self._home not in (_OWN, *sys.stdlib_module_names):
            return _file_of(module) is not None
        return is_users(module)


class _Statement(NamedTuple):
    """A statement at the top of a module."""

    names: set[str]
    uses: set[str]
    text: str
    node: ast.stmt


@lru_cache(maxsize=256)
def _statements(text: str) -> list[_Statement]:
    """Return the statements of a module, without ``if __name__ == "__main__": ...``, which no part uses."""
    found, lines = [], text.splitlines(keepends=True)
    for node in ast.parse(text).body:
        if isinstance(node, ast.If) and "__name__" in _uses(node.test):
            continue
        first = node.decorator_list[0].lineno if isinstance(node, _DEFINITIONS) and node.decorator_list else node.lineno
        found.append(_Statement(_names(node), _uses(node), "".join(lines[first - 1 : node.end_lineno]), node))
    return found


_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PLAIN: Final = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
"""Statements that only bind names, unless they assign to an element or an attribute of something."""


def _names(statement: ast.stmt) -> set[str]:
    if isinstance(statement, _DEFINITIONS):
        return {statement.name}
    names, changes = set(), not isinstance(statement, _PLAIN)
    for node in ast.walk(statement):
        if isinstance(node, _DEFINITIONS):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            if isinstance(node, ast.Name):
                names.add(node.id)
            else:
                changes = True
    return names | _uses(statement) if changes else names


def _uses(statement: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and node.attr in _OPAQUE:
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            names.add(node.value)
    return names


def _imports(statement: ast.stmt, module: str) -> Iterator[str]:
    """Yield the modules that a statement of a module imports, at its top or within."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = importlib.util.resolve_name("." * node.level + (node.module or ""), _package_of(module))
            yield origin
            if Path(_file_of(origin) or "").stem == "__init__":
                yield from (f"{origin}.{alias.name}" for alias in node.names)


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


def _text_of(module: str) -> str:
    try:
        if module in sys.modules:
            text = inspect.getsource(sys.modules[module])
        else:
            with tokenize.open(_file_of(module) or "") as file:
                text = file.read()
        _statements(text)
    except (OSError, TypeError, SyntaxError, UnicodeDecodeError):
        raise _UnreadableError(f"the source of module {module!r} cannot be read") from None
    return text


def _check_loaded(found: Code) -> None:
    """Refuse a class or function that is not the one that the source of its module defines."""
    name, where = found.__qualname__, f"{found.__module__}:{found.__qualname__}"
    text, module = _text_of(found.__module__), sys.modules[found.__module__]
    at: object = module
    for step in name.split("."):
        at = getattr(at, step, None)
    if at is not found or not any(name.partition(".")[0] in each.names for each in _statements(text)):
        raise _UnreadableError(f"{where} was made while the program ran")
    if not isinstance(getattr(module, "__loader__", None), SourceFileLoader):
        return
    file, codes = inspect.getsourcefile(module), set(_codes(compile(text, "source", "exec", dont_inherit=True)))
    for value in vars(found).values() if isinstance(found, type) else (found,):
        function = inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", value)))
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType) and code.co_filename == file and code not in codes:
            raise _UnreadableError(f"the source of {where} has changed since it was loaded")


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
