"""The state of a run folder: its file ``run.json``, written as a whole or not at all."""

import hashlib
import json
import platform
import traceback
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedsim.errors import FedsimError, RunError
from fedsim.history.schema import FORMAT_VERSION
from fedsim.history.spool import Extent
from fedsim.results.lock import in_use
from fedsim.results.places import located
from fedsim.whole_files import replace_file

Cohorts = Literal["selector", "outside"]
"""Where the cohorts of a run come from: the selector of its scenario, or the calls of a testbed."""
Status = Literal["running", "finished", "interrupted", "failed"]
Count = Annotated[int, Field(ge=0, strict=True)]

STATE: Final = "run.json"
_CHECKSUM: Final = "checksum"
_PACKAGES: Final = ("fedsim-des", "numpy", "scipy", "simpy", "torch", "torchvision")
_LINES_OF_TRACEBACK: Final = 20


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class TableState(_Record):
    """One table: the rows of whole rounds, and of an unfinished run what its stream holds."""

    rows: Count
    stored: Count = 0
    bytes: Count = 0
    crc32: Count | None = None

    @property
    def extent(self) -> Extent:
        return Extent(self.stored, self.bytes, self.crc32 or 0)


class FileState(_Record):
    """A file that is complete: its size and the SHA-256 of its bytes."""

    bytes: Count
    sha256: str


class Ended(_Record):
    """What has ended a run: the type of the error, its message, and the last lines of its traceback."""

    type: str
    message: str
    traceback: list[str]

    @classmethod
    def of(cls, error: BaseException) -> "Ended":
        """Return the description of an error; a Ctrl-C has no message of its own."""
        cut = error.origin if isinstance(error, FedsimError) else ""
        lines = _plain(cut or "".join(traceback.format_exception(error))).splitlines()
        message = _plain(str(error)) or ("Ctrl-C" if isinstance(error, KeyboardInterrupt) else "")
        return cls(type=type(error).__name__, message=message, traceback=lines[-_LINES_OF_TRACEBACK:])


class RunState(_Record):
    format: Count
    name: str
    digest: str
    data: str | None = None
    files: dict[str, str] = {}
    opened: dict[str, str] = {}
    outside: str = ""
    code: dict[str, str] = {}
    modules: list[str] = []
    seed: int | None = None
    cohorts: Cohorts = "selector"
    status: Status
    error: Ended | None = None
    rounds: Count = 0
    planned: Count | None = None
    tables: dict[str, TableState] = {}
    wall_s: float = 0.0
    executor: dict[str, Any] | None = None
    versions: dict[str, str] = {}
    written: dict[str, FileState | None] = {}


def _plain(text: str) -> str:
    """Return a text without what UTF-8 cannot encode, as the name of a file may have."""
    return text.encode("utf-8", "backslashreplace").decode()


def read_state(path: Path) -> RunState:
    return _read(path, located(path, STATE))


def state_in(path: Path) -> RunState:
    """Return the content of the ``run.json`` in a folder itself, even while an exchange goes on."""
    return _read(path, path / STATE)


def _read(path: Path, file: Path) -> RunState:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        study = "; it holds a study: fedsim compare" * (path / "study.toml").exists()
        raise RunError(f"{path}: holds no run (no readable run.json){study}") from None
    if not isinstance(found, dict) or not {"name", "digest", "status"} <= found.keys():
        raise RunError(f"{file}: is not the state of a run")
    # The first folders had no number.
    form = found.get("format", 1)
    if type(form) is int and form != FORMAT_VERSION:
        older = "an older version of fedsim, run it anew with --force"
        by = older if form < FORMAT_VERSION else "a newer version of fedsim"
        raise RunError(
            f"{file}: the folder was written by {by}: its format is {form}, and this version reads {FORMAT_VERSION}"
        )
    if found.pop(_CHECKSUM, None) != seal(found):
        raise RunError(f"{file}: is damaged: its checksum is not that of its content")
    try:
        return RunState.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise RunError(f"{file}: is damaged: {where}: {first['input']!r} is not allowed ({first['msg']})") from None


def write_state(path: Path, state: RunState) -> None:
    values = state.model_dump(mode="json")
    write_json(path / STATE, {**values, _CHECKSUM: seal(values)})


def seal(values: Mapping[str, Any]) -> str:
    """Return the checksum of a state without its checksum."""
    return hashlib.blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=8).hexdigest()


def status_of(path: str | Path) -> Literal["running", "finished", "interrupted", "failed", "killed"]:
    """Return the status of the run in a folder; one that says it is running, in a folder not in use, was killed."""
    folder = Path(path)
    status = read_state(folder).status
    if status == "running" and not in_use(folder):
        # It may have ended between the two looks.
        status = read_state(folder).status
        return "killed" if status == "running" else status
    return status


def shortfall(path: str | Path) -> str | None:
    """Return in words what a run lacks to be whole, and why; None for a finished run."""
    folder = Path(path)
    status, state = status_of(folder), read_state(folder)
    if state.status == "finished":
        return None
    of = "" if state.planned is None else f" of at most {state.planned}"
    error = state.error
    cause = "" if error is None else f" ({error.type}: {error.message})" if error.message else f" ({error.type})"
    return f"{status} after {state.rounds}{of} rounds{cause}"


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write values as JSON, as a whole or not at all."""
    text = json.dumps(values, indent=2) + "\n"
    replace_file(path, lambda part: part.write_text(text, encoding="utf-8"))


@cache
def versions() -> dict[str, str]:
    """Return the versions of the packages that a result depends on; packages that are not installed are left out."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
