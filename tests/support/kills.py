"""Runs that are killed at every instant at which a run folder changes, in processes of their own.

    python tests/support/kills.py SCENARIO FOLDER STORE [--replace] POINT...

For each number a process runs the scenario in the folder and kills itself with SIGKILL at its act of that number upon a
file: opening, moving or removing one, or writing rows. A last process runs to the end. After each the standard output
has a line: how the process ended, and the rounds that `read_run` finds. With ``--replace`` the first process replaces
the run that the folder holds; the others go on with it.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from fedsim import Scenario, read_run
from fedsim.errors import RunError
from fedsim.history import recorder, spool
from fedsim.results import recording, saver

ACTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}


def run_and_die(scenario: Scenario, folder: Path, store: Any, point: int, *, replace: bool) -> None:
    """Run a scenario and die at an act upon a file of its folder; never if the point is 0."""
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
    recorder.ROWS_IN_A_BATCH = 5  # type: ignore[misc]
    sys.addaudithook(heard)
    recording.run(scenario, folder, store=store, replace=replace)


def main() -> None:
    """Run, die, and say what is left."""
    # Loaded once, and not in every process.
    import matplotlib.backends.backend_agg  # noqa: F401

    scenario, folder = Scenario.load(sys.argv[1]), Path(sys.argv[2]).absolute()
    if scenario.learning.provides:
        import torch  # noqa: F401
    points = [int(point) for point in sys.argv[4:] if point != "--replace"]
    for i, point in enumerate([*points, 0]):
        replace = not i and "--replace" in sys.argv
        ended = in_a_fork(partial(run_and_die, scenario, folder, sys.argv[3] or None, point, replace=replace))
        if in_a_fork(partial(print_what_is_left, folder, ended)):
            sys.exit("the folder could not be read")


def in_a_fork(act: Callable[[], None]) -> int:
    """Act in a forked process, and return how it ended.

    The parent reads no tables: the threads with which Arrow reads do not survive a fork.
    """
    child = os.fork()
    if not child:
        act()
        sys.stdout.flush()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def print_what_is_left(folder: Path, ended: int) -> None:
    """Print how a process ended, and the rounds and the status that it has left in the folder."""
    try:
        rounds = read_run(folder).rounds.num_rows
    except RunError:
        rounds = -1
    state = folder / "run.json"
    status = json.loads(state.read_text())["status"] if state.exists() else None
    print(json.dumps({"ended": ended, "rounds": rounds, "status": status}))  # noqa: T201


if __name__ == "__main__":
    main()
