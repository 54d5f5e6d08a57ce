"""Files that parts of the user's own open, and variables of the environment that they read, with hashes of the content.

An audit hook of Python tells of files; variables are told of by a class in the place of that of `os.environ`.
"""

import hashlib
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Final

from fedsim.answers.module_values import MODULE_VARIABLE, hash_now
from fedsim.code_digest import is_users_file

UNREADABLE: Final = "unreadable"
NOT_TOLD: Final = "what its results depend on cannot be told, so that no other run shares them"
_VARIABLE: Final = "environment variable "
_UNSET: Final = "unset"
_LISTED: Final = "names of "
_FILES: Final = frozenset({"open", "sqlite3.connect"})
_FOLDERS: Final = frozenset({"os.listdir", "os.scandir"})
_OUTSIDE: Final = frozenset({"socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.posix_spawn"})
"""Events after which a part may know what no file holds."""
_NOTED: Final = _FILES | _FOLDERS | _OUTSIDE
_CODE: Final = (".py", ".pyc", ".so", ".pyd", ".dll")
_INSTALLED: Final = tuple({sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()})
_SYSTEM: Final = ("/proc", "/sys", "/dev")
_ANSWERS: Final = f"{Path(__file__).parent}{os.sep}"
_FEDSIM: Final = f"{Path(__file__).parents[1]}{os.sep}"

_hooked: Final[list[bool]] = []


class OpenedFiles:
    """What parts of the user's own have read while they were noted."""

    def __init__(self) -> None:
        self.paths: dict[str, None] = {}
        self.folders: dict[str, None] = {}
        self.variables: dict[str, str] = {}
        self.written: set[str] = set()
        self.outside: str = ""

    def untold(self, who: str) -> str:
        """Return a sentence if the part may know what no file holds; empty if not."""
        return f"{who} has asked for more than files ({self.outside}); {NOT_TOLD}" if self.outside else ""

    def contents(self) -> dict[str, str]:
        """Return the SHA-256 of each file as it is now, by its path as opened, and of each variable as it was read.

        Of a folder that was listed it is that of the names: those that end as all files do that were opened there.
        """
        files = {path: content_of(path) for path in sorted(self.paths) if os.path.realpath(path) not in self.written}
        for folder in sorted(self.folders):
            endings = {Path(path).suffix for path in files if Path(path).parent == Path(folder)}
            listed = f"{_LISTED}*{endings.pop() if len(endings) == 1 else ''} in {folder}"
            files[listed] = content_of(listed)
        return files | dict(sorted(self.variables.items()))


class _Noting(threading.local):
    all: tuple[OpenedFiles, ...] = ()


_noting: Final = _Noting()


@contextmanager
def opened_files() -> Iterator[OpenedFiles]:
    """Note what the user's own code reads in this thread: variables, and files other than code and beside Python."""
    if not _hooked:  # no hook can be removed again
        _hooked.append(True)
        sys.addaudithook(_note)
        for environment in (os.environ, *([os.environb] if os.supports_bytes_environ else ())):
            environment.__class__ = _NotedEnvironment
    noted, before = OpenedFiles(), _noting.all
    _noting.all = (*before, noted)
    try:
        yield noted
    finally:
        _noting.all = before


@contextmanager
def nothing_noted() -> Iterator[None]:
    """Leave out what is opened in this thread meanwhile, as by a callback, which is no part of a run."""
    before = _noting.all
    _noting.all = ()
    try:
        yield
    finally:
        _noting.all = before


def with_untold(remarks: tuple[str, ...], untold: str) -> tuple[str, ...]:
    """Return a run's remarks, which say once that what its own parts depend on cannot be told, if that is so."""
    said = not untold or any(NOT_TOLD in remark for remark in remarks)
    return remarks if said else (*remarks, untold)


def changed(contents: Mapping[str, str]) -> list[str]:
    """Return the files and variables, also of modules, whose content is another one than it was."""
    return [path for path, before in contents.items() if content_of(path) != before]


def unchanged(contents: Mapping[str, str]) -> dict[str, str]:
    """Return what is as it was: a variable that a run changes is a part's own state."""
    gone = changed(contents)
    return {path: content for path, content in contents.items() if path not in gone}


def content_of(path: str) -> str:
    if path.startswith(_VARIABLE):
        return _content_of_variable(path.removeprefix(_VARIABLE))
    if path.startswith(MODULE_VARIABLE):
        return hash_now(path)
    try:
        if path.startswith(_LISTED):
            pattern, _, folder = path.removeprefix(_LISTED).partition(" in ")
            names = sorted(entry.name for entry in Path(folder).glob(pattern))
            return hashlib.sha256("\n".join(names).encode()).hexdigest()
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return UNREADABLE


def _content_of_variable(name: str) -> str:
    value = os.environ.get(name)
    return _UNSET if value is None else hashlib.sha256(os.fsencode(value)).hexdigest()


class _NotedEnvironment(os._Environ[Any]):
    """The variables of the environment, where those that the user's own code reads or sets are noted."""

    def __getitem__(self, key: Any) -> Any:
        _note_variable(key, sys._getframe(1))
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        _note_variable(key, sys._getframe(1), is_set=True)

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        _note_variable(key, sys._getframe(1), is_set=True)


def _note_variable(key: Any, caller: FrameType | None, *, is_set: bool = False) -> None:
    while caller is not None and caller.f_globals.get("__name__") in ("os", "collections.abc"):
        caller = caller.f_back
    # A library that looks at all variables, or at one of its own, says nothing about the part that calls it.
    if not _noting.all or caller is None or not isinstance(key, str | bytes):
        return
    if not _is_users(caller.f_code.co_filename):
        return
    name = os.fsdecode(key)
    where = f"{_VARIABLE}{name}"
    with nothing_noted():
        content = _content_of_variable(name)
    for noted in _noting.all:
        if is_set:
            noted.written.add(where)
        elif where not in noted.written:
            noted.variables.setdefault(where, content)


def _note(event: str, given: tuple[Any, ...], here: _Noting = _noting) -> None:
    noting = here.all  # at the end of the process no name of this module has a value
    if not noting or event not in _NOTED or not _by_the_user(sys._getframe(1)):
        return
    if event in _OUTSIDE:
        for noted in noting:
            noted.outside = noted.outside or event
        return
    path, mode, flags = (*given, None, None)[:3]
    if not isinstance(path, str | bytes | os.PathLike):
        return
    named = os.fsdecode(path)
    is_folder, whole = event in _FOLDERS, os.path.realpath(named)
    for noted in noting:
        if _writes(mode, flags) and not is_folder:
            noted.written.add(whole)
        elif not whole.startswith((*_SYSTEM, *_INSTALLED)) and (is_folder or _is_data(named)):
            (noted.folders if is_folder else noted.paths)[named] = None


def _writes(mode: Any, flags: Any) -> bool:
    return (isinstance(mode, str) and mode[:1] in "wax") or (isinstance(flags, int) and bool(flags & os.O_WRONLY))


def _is_data(named: str) -> bool:
    return not (named.endswith(_CODE) or Path(named).is_dir())


def _by_the_user(frame: FrameType | None) -> bool:
    """Return whether the innermost call that is no library's is of the user's code, or is fedsim's call of a part."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_ANSWERS):
            return True
        if file.startswith((_FEDSIM, "<frozen importlib")):  # a library's import reads its own files
            return False
        if _is_users(file):
            return True
        frame = frame.f_back
    return False


@cache
def _is_users(file: str) -> bool:
    return not file.startswith("<frozen") if file.startswith("<") else is_users_file(file)
