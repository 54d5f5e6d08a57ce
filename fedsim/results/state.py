"""The state of a run folder: its file ``run.json``, written as a whole or not at all."""

import json
import platform
import traceback
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, Literal

from fedsim.errors import RunError
from fedsim.history.schema import FORMAT_VERSION
from fedsim.results.lock import in_use

Status = Literal["running", "finished", "interrupted", "failed"]

STATE: Final = "run.json"
_PACKAGES: Final = ("fedsim-des", "numpy", "scipy", "simpy", "torch", "torchvision")
_LINES_OF_TRACEBACK: Final = 20


def read_state(path: Path) -> dict[str, Any]:
    """Return the content of a run folder's ``run.json``.

    Raises
    ------
    RunError
        If there is no such file, or it describes no run, or one of a newer format.
    """
    file = path / STATE
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise RunError(f"{path}: holds no run (no readable run.json)") from None
    if not isinstance(state, dict) or not {"name", "digest", "status"} <= state.keys():
        raise RunError(f"{file}: is not the state of a run")
    form = state.setdefault("format", 1)
    if not isinstance(form, int) or not 1 <= form <= FORMAT_VERSION:
        raise RunError(
            f"{file}: format {form!r} cannot be read; allowed: 1 to {FORMAT_VERSION}. A newer fedsim reads folders of "
            "a newer format"
        )
    return state


def status_of(path: str | Path) -> Literal["running", "finished", "interrupted", "failed", "killed"]:
    """Return how the run in a folder stands; one that says it is running, in a folder not in use, was killed.

    Raises
    ------
    RunError
        If the folder holds no run.
    """
    folder = Path(path)
    status = read_state(folder)["status"]
    if status == "running" and not in_use(folder):
        # It may have ended between the two looks.
        status = read_state(folder)["status"]
        return "killed" if status == "running" else status
    return status  # type: ignore[no-any-return]


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside its place and move it there.

    Parameters
    ----------
    path : of the file
    write : writes to a path

    Raises
    ------
    RunError
        If it cannot be written; what stood there before is not touched.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        write(part)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        if not path.parent.is_dir():
            raise RunError(f"{path.parent}: the folder of the run has vanished") from None
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write values as JSON, as a whole or not at all."""
    text = json.dumps(values, indent=2) + "\n"
    replace_file(path, lambda part: part.write_text(text, encoding="utf-8"))


def described(error: BaseException) -> dict[str, Any]:
    """Return an error as the state of a run keeps it: its type, its message, and the last lines of its traceback."""
    lines = "".join(traceback.format_exception(error)).splitlines()
    return {"type": type(error).__name__, "message": str(error), "traceback": lines[-_LINES_OF_TRACEBACK:]}


def versions() -> dict[str, str]:
    """Return the versions of the packages that a result depends on; packages that are not installed are left out."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
