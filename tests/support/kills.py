"""Runs that are killed, in forks of a server that has imported once what they need."""

import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedsim import Scenario, read_run
from fedsim.errors import RunError
from fedsim.history import growing, spool
from fedsim.results import recording, saver

ACTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
_FORKS = multiprocessing.get_context("forkserver")
_NEEDED = ["fedsim.results.recording", "fedsim.simulation", "fedsim.learning.supervised"]
_NEEDED += ["fedsim.learning.executors.sequential", "matplotlib.backends.backend_agg", "sklearn.datasets"]


def die(
    folder: Path, of: Scenario, store: Path | None, points: Sequence[int], *, replace: bool = False
) -> list[dict[str, Any]]:
    """Run a scenario that is killed at each point, and then to its end; return what each run has left.

    A point is the number of an act upon a file of the folder: opening, moving or removing one, or writing rows. With
    ``replace`` the first run replaces the one that the folder holds; the others go on with it.
    """
    _FORKS.set_forkserver_preload(_NEEDED)
    left = []
    for i, point in enumerate([*points, 0]):
        run = _FORKS.Process(target=_run_and_die, args=(of.to_toml(), folder, store, point, replace and not i))
        run.start()
        run.join()
        left.append({"ended": run.exitcode, **_left_in(folder)})
    return left


def _run_and_die(toml: str, folder: Path, store: Any, point: int, replace: bool) -> None:
    acts = 0

    def act() -> None:
        nonlocal acts
        acts += 1
        if acts == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ACTS and any(isinstance(one, str) and one.startswith(str(folder)) for one in arguments):
            act()

    write = spool.Spool._write

    def written(self: spool.Spool, segment: Any) -> None:
        act()
        write(self, segment)
        act()

    spool.Spool._write = written  # type: ignore[method-assign]
    # Every round is put on disk, and parts of rounds too.
    saver._SECONDS_BETWEEN_WRITES, saver._SHARE_OF_TIME_WRITING = 0.0, 1e9  # type: ignore[misc]
    growing.ROWS_IN_A_BATCH = 5  # type: ignore[misc]
    sys.addaudithook(heard)
    recording.run(Scenario.from_toml(toml), folder, store=store, replace=replace)


def _left_in(folder: Path) -> dict[str, Any]:
    try:
        rounds = read_run(folder).rounds.num_rows
    except RunError:
        rounds = -1
    state = folder / "run.json"
    return {"rounds": rounds, "status": json.loads(state.read_text())["status"] if state.exists() else None}
