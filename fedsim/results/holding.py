"""What a run folder holds for a scenario that is to run there, and the exchange of a run for a finished one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from fedsim.answers.opened_files import changed
from fedsim.errors import RunError
from fedsim.results import manifest
from fedsim.results.places import NEXT, SWAP, commit, complete, located, remove_folder
from fedsim.results.state import STATE, Cohorts, RunState, read_state, state_in

_OR_ELSE: Final = "; choose another folder with --out, or replace that run with --force"


class Holding(NamedTuple):
    place: Path
    state: RunState | None = None
    files: frozenset[str] = frozenset()


def changed_files(state: RunState, files: Mapping[str, str]) -> list[str]:
    named = [where for where, digest in files.items() if state.files.get(where, digest) != digest]
    return [*named, *(path for path in changed(state.opened) if path not in named)]


def look(folder: Path, digest: str | None, files_now: Mapping[str, str], *, replace: bool) -> Holding:
    """Return what an existing folder holds, or refuse it."""
    if not folder.is_dir():
        raise RunError(f"{folder}: is a file; a run needs a folder")
    if not located(folder, STATE).exists():
        if not all(manifest.is_own(entry.name) for entry in folder.iterdir()):
            raise RunError(f"{folder}: is a folder that holds no run; choose another with --out")
        return Holding(folder)
    files = frozenset(_files(folder))
    if replace:
        return Holding(folder / NEXT, None, files)
    state, beside = read_state(folder), _beside(folder)
    others = changed_files(state, files_now)
    finished = state.digest == digest and state.status == "finished" and not others
    if finished and not state.outside:
        return Holding(folder, state, files)
    if beside is not None and beside.digest == digest and not changed(beside.opened):
        return Holding(folder / NEXT, beside, files)
    if state.digest != digest or others:
        raise of_another(folder, state, f"; the content of {', '.join(others)} has changed" if others else "")
    if finished:
        raise RunError(f"{folder}: holds a run of this scenario, but {state.outside}{_OR_ELSE}")
    return Holding(folder, state, files)


def of_another(folder: Path, state: RunState, why: str) -> RunError:
    return RunError(f"{folder}: holds a run of another scenario (digest {state.digest[:12]}{why}){_OR_ELSE}")


def refuse_outside(folder: Path, state: RunState | None, cohorts: Cohorts) -> None:
    """Refuse to go on with a run, or to read it in its scenario's place, whose cohorts come from outside."""
    if state is None or "outside" not in (state.cohorts, cohorts):
        return
    held = "came from outside, by the calls of a testbed" if state.cohorts == "outside" else "were its selector's"
    raise RunError(
        f"{folder}: holds a run of this scenario whose cohorts {held}; it cannot be replayed from the scenario. Choose "
        "another folder with --out, or replace that run with --force"
    )


def exchange(folder: Path, held: Holding, state: RunState) -> Holding:
    """Put a finished run that was written beside in the place of the one that the folder holds."""
    manifest.refuse_others(folder, manifest.files_of(state), held.files)
    commit(folder)
    complete_exchange(folder)
    return Holding(folder, state, frozenset(_files(folder)))


def complete_exchange(folder: Path) -> None:
    """Move the files that an exchange has left, or remove the folder of one that a kill cut off after its last file."""
    if (folder / SWAP / STATE).exists():
        complete(folder, _files(folder), manifest.files_of(state_in(folder / SWAP)), STATE)
    else:
        remove_folder(folder / SWAP)


def _files(folder: Path) -> set[str]:
    """Return the files of the run in a folder; where its state cannot be read, those that any run may write."""
    try:
        return manifest.files_of(state_in(folder))
    except RunError:
        return manifest.usual(folder)


def _beside(folder: Path) -> RunState | None:
    """Return the state of a run that was to replace the one of a folder, and was cut off."""
    try:
        return state_in(folder / NEXT)
    except RunError:
        return None
