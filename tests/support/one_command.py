"""One command line in this process, and what is wrong with how it ended."""

import contextlib
import functools
import io
import json
import math
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pyarrow as pa
import typer.main

from fedsim import cli, read_run
from fedsim.devices.availability import on_off
from fedsim.errors import FedsimError
from fedsim.history.schema import TABLES
from fedsim.network.medium import failures
from fedsim.results import status_of
from fedsim.rounds.server import asynchronous, server
from fedsim.studies.running import engine, records

LIMIT_S: Final = 20.0
"""Seconds of a processor that a command may take; waits for other processes do not count."""

_FAULTS: Final = ("AuditError", "ContractError", "PartError", "SelectorError")


def packs_in_turn(packs: Any, blobs: Any, options: Any, jobs: int | None) -> Iterator[Any]:
    """Make the runs of a study in this process, one after the other."""
    for pack in packs:
        yield records.run_pack(blobs, pack, options)


CHEAPER: Final = (
    (engine, "in_processes", packs_in_turn),
    (asynchronous, "PATIENCE", 50),
    (server, "MOST_RESTARTS", 200),
    (on_off, "MOST_SOJOURNS", 16_000),
    (failures, "MOST_SOJOURNS", 16_000),
    (os, "fsync", lambda _file: None),
    (typer.main, "get_command", functools.cache(typer.main.get_command)),
)
"""Module, name and value of what makes a case short.

Little patience, no wait for the disk, and the command line described once.
"""


class TooLongError(BaseException):
    """A command takes longer than it may."""


@dataclass(frozen=True)
class Ended:
    """How a command ended; the code is None if it took too long."""

    code: int | None
    out: str
    errors: str


def call(arguments: Sequence[str]) -> Ended:
    out, errors = io.StringIO(), io.StringIO()
    before, code = sys.argv, 0
    sys.argv = ["fedsim", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), _limited() as late:
            try:
                cli.main()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
            except TooLongError:
                late.append("")
    finally:
        sys.argv = before
    return Ended(None if late else code, out.getvalue(), errors.getvalue() + "".join(late))


@contextlib.contextmanager
def _limited() -> Iterator[list[str]]:
    """Raise TooLongError after `LIMIT_S` of the processor; the list that is given then holds where that was."""
    late: list[str] = []

    def end(_number: int, frame: FrameType | None) -> None:
        places = []
        while frame is not None and len(places) < 12:
            places.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
            frame = frame.f_back
        late.append("too long at " + " < ".join(places))
        raise TooLongError

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    try:
        yield late
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def faults(ended: Ended, folder: Path | None = None) -> list[str]:
    """Return what is wrong with the end of a command and with the run folder that it may have written."""
    found = []
    if ended.code is None:
        found.append(f"a hang: {ended.errors[-600:]}")
    elif ended.code not in (0, 2):
        found.append(f"exit code {ended.code}: {ended.errors[-1500:]}")
    if "Traceback" in ended.errors or "Traceback" in ended.out:
        found.append(f"a traceback: {ended.errors[-1500:]}")
    if ended.code == 2 and not (ended.errors + ended.out).strip():
        found.append("a refusal without words")
    if folder is not None and ended.code is not None:
        found += _faults_of_folder(ended, folder)
    return found


def _faults_of_folder(ended: Ended, folder: Path) -> Iterator[str]:
    if not folder.exists():
        if ended.code == 0:
            yield "there is no run folder"
        return
    state = folder / "run.json"
    if not state.exists():
        left = sorted(path.name for path in folder.iterdir())
        if left:
            yield f"a folder without a run: {left}"
        return
    try:
        status, history = status_of(folder), read_run(folder)
    except FedsimError as error:
        yield f"a folder that cannot be read: {error}"
        return
    error = json.loads(state.read_text()).get("error") or {}
    if error.get("type") in _FAULTS and "not allowed" not in error.get("message", ""):
        yield f"{error.get('type')}: {error.get('message')}"
    if status != {0: "finished", 2: "failed"}.get(ended.code or 0):
        yield f"exit code {ended.code} and status {status}"
    for name, table in history.tables().items():
        yield from wrong_numbers(name, table)


def wrong_numbers(name: str, table: pa.Table) -> Iterator[str]:
    """Yield each column of a table with a number that is not finite, or a time, size or energy below 0."""
    for column in TABLES[name].columns:
        values: Any = table.column(column.name)
        if values.null_count and not column.null:
            yield f"{name}.{column.name}: no value"
        if not pa.types.is_floating(column.type):
            continue
        for value in values.drop_null().to_pylist():
            if not math.isfinite(value) or (column.unit in ("s", "bit", "J") and value < 0):
                yield f"{name}.{column.name}: {value}"
                break
