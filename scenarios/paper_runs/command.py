"""Options that the commands of all papers share."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from fedsim.learning import EXECUTORS
from fedsim.scenario import parse_assignment
from paper_runs.runs import Ended, PaperRun, run_all
from paper_runs.tables import write

_PLACES: Final = ("--data-dir", "--store", "--out")
"""Options that name folders of this machine, which no result depends on."""


def share(text: str) -> float:
    """Return a number above 0 and at most 1."""
    value = float(text)
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be above 0 and at most 1")
    return value


def count(text: str) -> int:
    """Return a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be at least 1")
    return value


def options(about: str, out: str, methods: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser with the common options; a study adds its own."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--scale", type=share, default=1.0, help="share of the rounds that are run, for a quick look")
    parser.add_argument("--seeds", type=count, default=1, help="how many seeds, from the paper's own on")
    parser.add_argument("--methods", nargs="+", choices=methods, default=list(methods), metavar="NAME")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="of every scenario")
    parser.add_argument("--workers", type=count, default=os.cpu_count() or 1, help="runs at a time")
    parser.add_argument("--executor", choices=EXECUTORS.kinds(), default="auto", help="of each run")
    parser.add_argument("--data-dir", type=Path, default=None, help="of data sets; FEDSIM_DATA by default")
    parser.add_argument("--store", type=Path, default=None, help="of trainings; the user's cache by default")
    parser.add_argument("--out", type=Path, default=Path(out), help="folder of runs, tables and figures")
    return parser


def changes(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what ``--set`` changes of every scenario, by dotted names."""
    return dict(parse_assignment(text) for text in arguments.set)


def command_line(script: str, arguments: Sequence[str]) -> str:
    """Return the command that a table states: without the folders of this machine."""
    kept, given = [], iter(arguments)
    for one in given:
        if one in _PLACES:
            next(given, None)
        elif not one.startswith(tuple(f"{place}=" for place in _PLACES)):
            kept.append(one)
    return shlex.join(["python", script, *kept])


def run_asked(runs: Sequence[PaperRun], arguments: argparse.Namespace) -> list[Ended]:
    """Run what has not ended so far, as the options say, and return all runs in their order."""
    return run_all(
        runs,
        arguments.out / "runs",
        workers=arguments.workers,
        executor=arguments.executor,
        data_dir=arguments.data_dir,
        store=arguments.store,
    )


def publish(script: str, parts: Sequence[str], out: Path) -> None:
    """Write the parts of a table beneath the command that makes it, and print them."""
    text = "\n".join([f"`{command_line(script, sys.argv[1:])}`\n", *parts])
    write(text, out / "table.md")
    print(f"\n{text}\n{out / 'table.md'}")
