"""Options that the commands of all papers share, and the table that a command writes."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fedsim.errors import FedsimError
from fedsim.learning import EXECUTORS
from fedsim.scenario import parse_assignment
from fedsim.studies.running.engine import Engine
from paper_runs.tables import recorded, repeated, tables_of, write

_UNTOLD: Final = ("--data-dir", "--store", "--out", "--workers", "--executor")
"""Options with a value that no result depends on."""


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


def sizes(about: str | None, **defaults: Any) -> argparse.Namespace:
    """Return the options of a study without runs: sizes, one word of a list, or names that are chosen where true."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in defaults.items():
        more: dict[str, Any] = {"type": Path if value is None else type(value), "default": value}
        if isinstance(value, int):
            more["type"] = count
        elif isinstance(value, list):
            more = {"choices": value, "default": value[0]}
        elif isinstance(value, dict):
            usual = [one for one, chosen in value.items() if chosen]
            more = {"nargs": "+", "choices": list(value), "default": usual, "metavar": "NAME", "help": ", ".join(value)}
        parser.add_argument(f"--{name.replace('_', '-')}", **more)
    return parser.parse_args()


def options(about: str | None, out: str, methods: Mapping[str, str]) -> argparse.ArgumentParser:
    """Return a parser with the options of a study of runs; a study adds its own."""
    names = "; ".join(f"{name}: {label}" for name, label in methods.items())
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=share, default=1.0, help="share of the rounds that are run, for a quick look")
    parser.add_argument("--seeds", type=count, default=1, help="how many seeds, from the paper's own on")
    parser.add_argument("--methods", nargs="+", choices=methods, default=list(methods), metavar="NAME", help=names)
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="of every scenario")
    parser.add_argument("--repeat", action="store_true", help="print the page's table of this command beside the new")
    parser.add_argument("--workers", type=count, default=os.cpu_count() or 1, help="runs at a time")
    parser.add_argument("--executor", choices=EXECUTORS.kinds(), default="auto", help="of each run")
    parser.add_argument("--data-dir", type=Path, default=None, help="of data sets; FEDSIM_DATA by default")
    parser.add_argument("--store", type=Path, default=None, help="of trainings; the user's cache by default")
    parser.add_argument("--out", type=Path, default=Path(out), help="folder of runs, tables and figures")
    return parser


def engine(asked: argparse.Namespace) -> Engine:
    return Engine("processes", asked.workers, asked.store, asked.data_dir, asked.executor)


def changes(asked: argparse.Namespace) -> dict[str, Any]:
    """Return what ``--set`` changes of every scenario, by dotted names."""
    return dict(parse_assignment(text) for text in asked.set)


def command_line(script: str, arguments: Sequence[str]) -> str:
    """Return the command that a table states: without what says where, how, or beside what it runs."""
    kept, given = [], iter(arguments)
    for one in given:
        if one in _UNTOLD:
            next(given, None)
        elif one != "--repeat" and not one.startswith(tuple(f"{name}=" for name in _UNTOLD)):
            kept.append(one)
    return shlex.join(["python", script, *kept])


def publish(script: str, parts: Sequence[str], asked: argparse.Namespace) -> None:
    """Write the parts of a table beneath the command that makes it, and print them; beside the page's if asked."""
    command = command_line(script, sys.argv[1:])
    text = "\n".join([f"`{command}`\n", *parts])
    write(text, asked.out / "table.md")
    print(f"\n{text}\n{asked.out / 'table.md'}")
    if asked.repeat:
        page = Path(script).parent / "README.md"
        old = recorded((Path(__file__).parents[2] / page).read_text(encoding="utf-8"), command)
        if old is None:
            raise SystemExit(f"{page} has no table of this command: {command}")
        print(f"\n{repeated(old, [row for table in tables_of(text) for row in table], asked.seeds)}")


def in_words(main: Callable[[], None]) -> None:
    """Run a command; what is not allowed ends it with a sentence."""
    try:
        main()
    except (FedsimError, OSError) as error:
        raise SystemExit(f"{Path(sys.argv[0]).name}: {error}") from None
