"""Runs that are killed, in forks of a process that has imported once what they need.

A `Warmed` process runs this file as a script. It takes tasks, one line of JSON each, and answers with lines of JSON.

For each point of ``die`` a fork runs the scenario in the folder and kills itself with SIGKILL at its act of that number
upon a file: opening, moving or removing one, or writing rows. A last fork runs to the end. After each a line tells
how it ended, and the rounds that `read_run` finds. With ``replace`` the first fork replaces the run that the folder
holds; the others go on with it.
"""

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from fedsim import Scenario, read_run
from fedsim.errors import RunError
from fedsim.history import growing, spool
from fedsim.results import recording, saver

ACTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}


class Warmed:
    """A process whose forks run scenarios."""

    def __init__(self) -> None:
        root = Path(__file__).parents[2]
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, __file__],
            env={**os.environ, "PYTHONPATH": str(root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def die(
        self, folder: Path, of: Scenario, store: Path | None, points: Sequence[int], *, replace: bool = False
    ) -> list[Any]:
        toml = folder.with_suffix(".toml")
        toml.write_text(of.to_toml())
        self._ask(str(toml), str(folder), None if store is None else str(store), [*points], replace)
        return [self._answer() for _ in [*points, 0]]

    def _ask(self, *task: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


def main() -> None:
    # Loaded once, and not in every fork.
    import matplotlib.backends.backend_agg  # noqa: F401

    known: set[str] = set()
    for line in sys.stdin:
        toml, *task = json.loads(line)
        scenario = Scenario.load(toml)
        if (text := scenario.to_toml()) not in known:
            known.add(text)
            import_what_needs(scenario)
        die(scenario, *task)


def import_what_needs(scenario: Scenario) -> None:
    """Import the modules that a run imports when it needs them; the run itself is left to a fork, with its threads."""
    reading, writing = os.pipe()

    def run() -> None:
        with tempfile.TemporaryDirectory() as place:
            recording.run(scenario, Path(place) / "run", store=False)
        with os.fdopen(writing, "w") as names:
            json.dump(list(sys.modules), names)

    child = fork(run)
    os.close(writing)
    with os.fdopen(reading) as names:
        for name in json.load(names):
            with contextlib.suppress(ImportError):  # what a module has made, and no file
                import_module(name)
    os.waitpid(child, 0)
    gc.freeze()  # forks do not copy what they only look through


def die(scenario: Scenario, folder: str, store: str | None, points: list[int], replace: bool) -> None:
    for i, point in enumerate([*points, 0]):
        again = replace and not i
        how = ended(fork(partial(run_and_die, scenario, Path(folder), store, point, replace=again)))
        if ended(fork(partial(tell_what_is_left, Path(folder), how))):
            sys.exit("the folder could not be read")


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
    growing.ROWS_IN_A_BATCH = 5  # type: ignore[misc]
    sys.addaudithook(heard)
    recording.run(scenario, folder, store=store, replace=replace)


def fork(act: Callable[[], None]) -> int:
    """Act in a forked process, and return its pid.

    The parent runs nothing and reads no tables: threads, such as those with which Arrow reads, do not survive a fork.
    """
    child = os.fork()
    if not child:
        act()
        sys.stdout.flush()
        os._exit(0)
    return child


def ended(child: int) -> int:
    """Wait for a process and return its exit code, or the number of its signal below 0."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def tell_what_is_left(folder: Path, how: int) -> None:
    """Tell how a process ended, and the rounds and the status that it has left in the folder."""
    try:
        rounds = read_run(folder).rounds.num_rows
    except RunError:
        rounds = -1
    state = folder / "run.json"
    status = json.loads(state.read_text())["status"] if state.exists() else None
    tell({"ended": how, "rounds": rounds, "status": status})


def tell(answer: object) -> None:
    print(json.dumps(answer), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
