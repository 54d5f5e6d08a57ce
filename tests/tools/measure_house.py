"""Measures the house: one row a figure, one column a checkout, so that before and after stand side by side.

    python tests/tools/measure_house.py                       # this checkout: what can be counted in its source
    python tests/tools/measure_house.py ../before .           # two checkouts
    python tests/tools/measure_house.py . --cases             # and the cases of each tier of its tests
    python tests/tools/measure_house.py . --cases --seconds   # minutes: and how long each tier takes here

A checkout is read, and for a round, the cases and the seconds it is run with this Python.
"""

import argparse
import ast
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table


def lines_of(paths: list[Path]) -> int:
    return sum(len(path.read_text().splitlines()) for path in paths)


def run(checkout: Path, *words: str) -> str:
    """Return what a command of Python prints in a checkout that is imported first."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout


def number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def seconds(checkout: Path, *words: str) -> float:
    begun = time.perf_counter()
    run(checkout, "-m", "pytest", "-q", *words)
    return round(time.perf_counter() - begun)


def measure(checkout: Path, *, with_cases: bool, with_seconds: bool) -> dict[str, float]:
    paths = sorted((checkout / "fedsim").rglob("*.py"))
    trees = [ast.parse(path.read_text()) for path in paths]
    of_a_round = run(checkout, "tests/tools/files_of_a_round.py")
    below = [checkout / name for name in ("fedsim", "scenarios", "tests")]
    found: dict[str, float] = {
        "lines of Python below fedsim": lines_of(paths),
        "files": len(paths),
        "classes": sum(isinstance(node, ast.ClassDef) for tree in trees for node in ast.walk(tree)),
        "lines of the longest file": max(lines_of([path]) for path in paths),
        "files that a round with a deadline enters": number(r"(\d+) files", of_a_round),
        "calls of their functions": number(r"(\d+) calls\n?$", of_a_round),
        "lines of pages": lines_of([*checkout.glob("*.md"), *(page for one in below for page in one.rglob("*.md"))]),
        "lines of Python below tests": lines_of(sorted((checkout / "tests").rglob("*.py"))),
    }
    for tier, words in (("default", ()), ("all", ("-m", ""))):
        if with_cases:
            told = run(checkout, "-m", "pytest", "--collect-only", "-q", "-n", "0", *words)
            found[f"{tier} cases"] = number(r"(\d+)(?:/\d+)? tests collected", told)
        if with_seconds:
            found[f"{tier} seconds"] = seconds(checkout, *words)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", nargs="*", default=["."], help="folders that hold fedsim and tests")
    parser.add_argument("--cases", action="store_true", help="collect the tests")
    parser.add_argument("--seconds", action="store_true", help="run the tests")
    chosen = parser.parse_args()
    columns = {
        name: measure(Path(name).resolve(), with_cases=chosen.cases, with_seconds=chosen.seconds)
        for name in chosen.checkout
    }
    table = Table("figure", *columns, box=box.MARKDOWN)
    for row in next(iter(columns.values())):
        table.add_row(row, *(f"{figures[row]:,.0f}" for figures in columns.values()))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
