"""Which files of a folder a run has written: these may be replaced and removed, and no other."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fedsim.errors import RunError
from fedsim.history.schema import TABLES
from fedsim.results.lock import LOCK, OWNER
from fedsim.results.places import NEXT, SWAP
from fedsim.results.state import STATE, FileState, RunState
from fedsim.whole_files import whole_name

SCENARIO: Final = "scenario.toml"
SUMMARY: Final = "summary.json"
MODEL: Final = "model.safetensors"
MODELS: Final = "models"
FIGURES: Final = (
    *("round_durations.png", "accuracy.png", "accuracy_by_round.png", "accuracy_of_clients.png"),
    *("leakage.png", "loss.png"),
)
STREAMS: Final = tuple(f"{name}.arrows" for name in TABLES)
ALWAYS: Final = (STATE, SCENARIO, SUMMARY, MODEL, *FIGURES, *STREAMS, *(f"{name}.parquet" for name in TABLES))
"""Files that a run of any scenario may write; models after single rounds come to them."""

_OURS: Final = {LOCK, OWNER, NEXT, SWAP}


def files_of(state: RunState) -> set[str]:
    """Return the files that a run wrote or may have been writing, by their path in its folder."""
    return {STATE, *state.written}


def usual(folder: Path) -> set[str]:
    """Return the files that a run of any scenario may have written to a folder, by their path in it."""
    models = (path.relative_to(folder).as_posix() for path in (folder / MODELS).glob("round-*.safetensors"))
    return {*ALWAYS, *models}


def refuse_others(folder: Path, names: Iterable[str], own: Iterable[str]) -> None:
    """Refuse to write files where there are files that no run wrote."""
    for name in sorted(set(names) - set(own)):
        if (folder / name).exists():
            raise RunError(
                f"{folder / name}: was not written by the run in this folder, and a run would write a file of this "
                "name; move it, or choose another folder with --out"
            )


def described(path: Path) -> FileState:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return FileState(bytes=file.tell(), sha256=digest)
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror}") from None


def checked_bytes(path: Path, name: str, state: RunState) -> bytes:
    """Return the content of a file of a run, compared with the checksum in the state, if there is one."""
    content = path.read_bytes()
    kept = state.written.get(name)
    if kept is not None and kept != FileState(bytes=len(content), sha256=hashlib.sha256(content).hexdigest()):
        raise ValueError("it is damaged, or was changed: its checksum is not that in run.json")
    return content


def parts(folder: Path, names: Iterable[str]) -> list[Path]:
    """Return what a kill has left of files that were being written."""
    wanted = set(names)
    places = [folder, folder / MODELS]
    found = [entry for place in places if place.is_dir() for entry in place.iterdir()]
    return [
        entry
        for entry in found
        if (whole := whole_name(entry.name)) and entry.with_name(whole).relative_to(folder).as_posix() in wanted
    ]


def is_own(name: str) -> bool:
    """Return whether an entry of a folder without a state may stem from a run that was killed as it began."""
    return name in _OURS or (whole_name(name) or "") in {OWNER, *ALWAYS}
