"""Options of the commands of all papers, and the table that a command writes."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from fedsim.cli.boundary import guarded
from fedsim.errors import FedsimError
from fedsim.learning import EXECUTORS
from fedsim.scenario import parse_assignment
from paper_runs.tables import recorded, repeated, tables_of, write

_PLACES: Final = ("--data-dir", "--store", "--out", "--workers", "--executor")
"""Options with a value that no result depends on."""
_HELP: Final = {
    "scale": "share of the rounds that are run, for a quick look",
    "seeds": "how many seeds, from the paper's own on",
    "repeat": "print the page's table of this command beside the new",
    "workers": "runs at a time",
    "executor": "of each run",
    "data_dir": "of data sets; FEDSIM_DATA by default",
    "store": "of trainings; the user's cache by default",
    "thin": "remove the tables of runs when their numbers are known",
    "out": "folder of runs, tables and figures",
}


def positive(usual: float) -> Callable[[str], float]:
    """Return what reads a count, or a share where the usual value is a float."""
    share = isinstance(usual, float)

    def number(text: str) -> float:
        value = type(usual)(text)
        if not 0 < value <= (1 if share else value):
            allowed = "above 0 and at most 1" if share else "at least 1"
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be {allowed}")
        return value

    return number


def options(about: str | None, **defaults: Any) -> argparse.ArgumentParser:
    """Return a parser by the defaults of its options.

    A list is of words of which the first is usual; names in a dictionary are chosen where their value is true; numbers
    are counts or shares, and what is None is a path.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in defaults.items():
        how: dict[str, Any] = {"type": Path if value is None else type(value), "default": value}
        if isinstance(value, bool):
            how = {"action": "store_true"}
        elif isinstance(value, int | float):
            how["type"] = positive(value)
        elif isinstance(value, list):
            how = {"choices": value, "default": value[0]}
        elif isinstance(value, dict):
            names = [f"{one}: {label}" if isinstance(label, str) else str(one) for one, label in value.items()]
            how = {"nargs": "+", "type": type(next(iter(value))), "choices": list(value), "metavar": "NAME"}
            how |= {"default": [one for one, chosen in value.items() if chosen], "help": "; ".join(names)}
        parser.add_argument(f"--{name.replace('_', '-')}", **{"help": _HELP.get(name), **how})
    return parser


def of_runs(about: str | None, out: str, methods: Mapping[str, str], **more: Any) -> argparse.ArgumentParser:
    """Return a parser with the options of a study of runs, and its own."""
    places = {"data_dir": None, "store": None, "out": Path(out)}
    executors = ["auto", *(kind for kind in EXECUTORS.kinds() if kind != "auto")]
    how = {"repeat": False, "workers": os.cpu_count() or 1, "executor": executors}
    parser = options(about, scale=1.0, seeds=1, methods=dict(methods), **how, **places, **more)
    parser.add_argument(
        "--set", type=parse_assignment, action="append", default=[], help="PATH=VALUE, of all scenarios"
    )
    return parser


def command_line(script: str, arguments: Sequence[str]) -> str:
    """Return the command that a table states: without what says where, how, or beside what it runs."""
    stated, given = [], iter(arguments)
    for one in given:
        if one in _PLACES:
            next(given, None)
        elif one != "--repeat" and not one.startswith(tuple(f"{name}=" for name in _PLACES)):
            stated.append(one)
    return shlex.join(["python", script, *stated])


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


def in_words(main: Callable[[], None]) -> NoReturn:
    """Run a command as those of fedsim: what is not allowed ends it in words, and a reader that has gone in silence."""

    def command() -> None:
        try:
            main()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise FedsimError(str(error)) from None

    sys.exit(guarded(command))
