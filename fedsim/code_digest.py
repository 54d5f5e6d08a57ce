"""Digests of the source of users' classes, so that two classes of one name are two parts.

The digest covers the class, its own base classes, and the functions, classes and constants of its module that they use,
directly or through one another; also what they use of the user's other modules by name. Where that cannot be told (a
module used as a whole, a star import, ``globals()``) the whole module counts. Parts of fedsim, of the standard library
and of other installed packages count with their names.

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
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Final, Self
from weakref import WeakKeyDictionary

_OWN: Final = __name__.partition(".")[0]
_INSTALLED: Final = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib"))
_OPAQUE: Final = {"globals", "vars", "eval", "exec", "__import__", "import_module"}
"""Calls by which code can reach whatever its module holds."""


@dataclass(frozen=True)
class CodeDigest:
    """What stands for a class's code.

    Attributes
    ----------
    text : 32 hexadecimal digits; for a class that cannot be read, a text that no other class and process has
    unreadable : why the source cannot be read; empty if it can
    """

    text: str
    unreadable: str = ""


class _UnreadableError(Exception):
    """The source of a class or module cannot be read."""


_KNOWN: Final[WeakKeyDictionary[type, CodeDigest]] = WeakKeyDictionary()
_PROCESS: Final = secrets.token_hex(8)
_NUMBERS: Final = itertools.count(1)


def is_builtin(found: type) -> bool:
    """Return whether a class is fedsim's own."""
    return found.__module__.partition(".")[0] == _OWN


def code_digest(found: type) -> CodeDigest:
    """Return the digest of a user's class; the first call for a class reads its source, later ones recall it."""
    if found not in _KNOWN:
        try:
            _KNOWN[found] = CodeDigest(_Sources(found).digest())
        except _UnreadableError as error:
            _KNOWN[found] = CodeDigest(f"{_PROCESS}-{os.getpid()}-{next(_NUMBERS)}", str(error))
    return _KNOWN[found]


class _Sources:
    """The pieces of source that a class is made of, collected from the class outwards."""

    def __init__(self, found: type) -> None:
        self._home = found.__module__.partition(".")[0]
        self._pieces: dict[tuple[str, str], str] = {}
        self._seen: set[tuple[str, str]] = set()
        for base in found.__mro__:
            if base is found or self._is_users(base.__module__):
                _check_loaded(base)
                self._add(base.__module__, base.__qualname__.partition(".")[0])

    def digest(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for (module, place), text in sorted(self._pieces.items()):
            for part in (module, place, text):
                digest.update(f"{len(part)}:".encode() + part.encode())
        return digest.hexdigest()

    def _add(self, module: str, name: str) -> None:
        """Take in what a module defines under a name, and what that uses."""
        source = _source_of(module)
        if (module, name) in self._seen:
            return
        self._seen.add((module, name))
        statements = list(source.statements(name))
        if source.opaque or any(_uses(statement) & _OPAQUE for statement in statements):
            self._add_whole(module)
            return
        for number, statement in enumerate(statements):
            self._pieces[module, f"{name} {number}"] = source.piece(statement)
            self._follow(module, statement, name)
            for used in sorted(_uses(statement) & source.defines.keys()):
                self._add(module, used)

    def _add_whole(self, module: str) -> None:
        if (module, "") in self._pieces:
            return
        source = _source_of(module)
        self._pieces[module, ""] = source.text
        for statement in (each for statements in source.defines.values() for each in statements):
            self._follow(module, statement, None)

    def _follow(self, module: str, statement: ast.stmt, name: str | None) -> None:
        """Take in what is imported from the user's other modules, under a name or under all of them."""
        # A statement binds its names; an import within a function counts whole.
        chosen = name if isinstance(statement, ast.ImportFrom) else None
        for node in ast.walk(statement):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if self._is_users(alias.name):
                        self._add_whole(alias.name)
            elif isinstance(node, ast.ImportFrom):
                origin = importlib.util.resolve_name("." * node.level + (node.module or ""), _package_of(module))
                for alias in node.names:
                    if self._is_users(origin) and chosen in (None, alias.asname or alias.name):
                        self._add_from(origin, alias.name)

    def _add_from(self, module: str, name: str) -> None:
        if name == "*":
            self._add_whole(module)
        elif Path(_file_of(module) or "").stem == "__init__" and _file_of(f"{module}.{name}"):
            self._add_whole(f"{module}.{name}")
        else:
            self._add(module, name)

    def _is_users(self, module: str) -> bool:
        """Return whether a module is the user's: of the part's own package, or installed nowhere."""
        top, file = module.partition(".")[0], _file_of(module)
        if top in (_OWN, *sys.stdlib_module_names) or file is None:
            return False
        return top == self._home or not any(place in Path(file).resolve().parents for place in _INSTALLED)


@dataclass(frozen=True)
class _Source:
    """The source of one module.

    Attributes
    ----------
    text, lines : of the whole module
    defines : statements at its top by the names that they bind
    changes : other statements at its top, which may change what the names stand for that they mention
    opaque : whether the module has a star import
    """

    text: str
    lines: list[str]
    defines: Mapping[str, list[ast.stmt]]
    changes: list[tuple[set[str], ast.stmt]]
    opaque: bool

    @classmethod
    def of(cls, text: str) -> Self:
        defines: dict[str, list[ast.stmt]] = {}
        changes: list[tuple[set[str], ast.stmt]] = []
        for statement in ast.parse(text).body:
            if _is_main(statement):
                continue
            for name in _bound(statement):
                defines.setdefault(name, []).append(statement)
            if not isinstance(statement, _PLAIN) or _targets(statement):
                changes.append((_uses(statement), statement))
        return cls(text, text.splitlines(keepends=True), defines, changes, "*" in defines)

    def statements(self, name: str) -> Iterator[ast.stmt]:
        """Yield the statements at the top of the module that bind a name, or may change what it stands for."""
        own = self.defines.get(name, [])
        yield from own
        if own:
            yield from (statement for used, statement in self.changes if name in used and statement not in own)

    def piece(self, statement: ast.stmt) -> str:
        first = min((each.lineno for each in getattr(statement, "decorator_list", ())), default=statement.lineno)
        return "".join(self.lines[first - 1 : statement.end_lineno])


_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PLAIN: Final = (*_DEFINITIONS, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
"""Statements that bind names and do nothing else."""


@lru_cache(maxsize=256)
def _parsed(text: str) -> _Source:
    return _Source.of(text)


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
        if module in sys.modules:
            return _parsed(inspect.getsource(sys.modules[module]))
        with tokenize.open(_file_of(module) or "") as file:
            return _parsed(file.read())
    except (OSError, TypeError, SyntaxError, UnicodeDecodeError):
        raise _UnreadableError(f"the source of module {module!r} cannot be read") from None


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement at the top of a module binds; ``"*"`` for all of another module's."""
    if isinstance(statement, _DEFINITIONS):
        return {statement.name}
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, _DEFINITIONS):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _targets(statement: ast.stmt) -> bool:
    """Return whether a statement assigns to an element or an attribute of something."""
    return any(
        isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store)
        for target in getattr(statement, "targets", [getattr(statement, "target", None)])
        if target
        for node in ast.walk(target)
    )


def _uses(statement: ast.stmt) -> set[str]:
    """Return every name that a statement mentions, its local ones and annotations in quotes included."""
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and node.attr in _OPAQUE:
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            names.add(node.value)
    return names


def _is_main(statement: ast.stmt) -> bool:
    """Return whether a statement is ``if __name__ == "__main__": ...``, which no part uses."""
    return isinstance(statement, ast.If) and "__name__" in _uses(ast.Expr(statement.test))


def _check_loaded(found: type) -> None:
    """Refuse a class that is not the one that the source of its module defines.

    Raises
    ------
    _UnreadableError
        If a function or ``exec`` made it, or its file has been edited since it was loaded.
    """
    name, where = found.__qualname__, f"{found.__module__}:{found.__qualname__}"
    source = _source_of(found.__module__)
    module = sys.modules[found.__module__]
    at: object = module
    for step in name.split("."):
        at = getattr(at, step, None)
    if at is not found or name.partition(".")[0] not in source.defines:
        raise _UnreadableError(f"{where} was made while the program ran")
    if not isinstance(getattr(module, "__loader__", None), SourceFileLoader):
        return
    file = inspect.getsourcefile(module)
    codes = set(_codes(compile(source.text, "source", "exec", dont_inherit=True)))
    for value in vars(found).values():
        function = inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", value)))
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType) and code.co_filename == file and _key(code) not in codes:
            raise _UnreadableError(f"the source of {where} has changed since it was loaded")


def _codes(code: CodeType) -> Iterator[Hashable]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield _key(constant)
            yield from _codes(constant)


def _key(code: CodeType) -> Hashable:
    """Return what tells two functions apart, the place of their file left out."""
    constants = tuple(_key(each) if isinstance(each, CodeType) else (type(each), each) for each in code.co_consts)
    return code.co_qualname, code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants
