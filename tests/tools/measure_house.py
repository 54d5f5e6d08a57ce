"""Measures the house: one row a figure, one column a checkout, so that before and after stand side by side.

    python tests/tools/measure_house.py                       # this checkout: what can be counted in its source
    python tests/tools/measure_house.py ../before .           # two checkouts
    python tests/tools/measure_house.py . --cases             # and the cases of each tier of its tests
    python tests/tools/measure_house.py . --cases --seconds   # minutes: and how long each tier takes here

A checkout is read, and for a round, the cases and the seconds it is run with this Python. What each figure counts is
printed below the table.
"""

import argparse
import ast
import io
import os
import re
import subprocess
import sys
import time
import tokenize
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
from rich import box
from rich.console import Console
from rich.table import Table

MEANING = {
    "lines": "lines of the files of Python below fedsim",
    "code": "of these, lines with a token that is neither a comment nor a docstring",
    "docstrings": "of these, lines of docstrings, and of strings below constants",
    "files": "files of Python below fedsim",
    "classes": "classes in them",
    "longest file": "lines",
    "floors": "most rooms above one another: the longest chain of imports of rooms right below fedsim",
    "files of a round": "files whose functions one round with a deadline enters (tests/tools/files_of_a_round.py)",
    "calls of a round": "calls of their functions",
    "checks for None": "`is None` and `is not None` below fedsim/rounds without hierarchy, audit and secure",
    "most parameters": "of a constructor of a class that is no table of a scenario, itself not counted",
    "pages": "lines of all pages (*.md), at the top and below fedsim, scenarios and tests",
    "test lines": "lines of the files of Python below tests",
    "default cases": "cases of `pytest`",
    "all cases": "cases of `pytest -m ''`",
    "default seconds": "seconds of `pytest` with its collection",
    "all seconds": "seconds of `pytest -m ''` with its collection",
}
_OUT_OF_ROUNDS = {"hierarchy", "audit", "secure"}
_NO_TOKENS = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENDMARKER, tokenize.ENCODING),
}


def sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def lines_of(paths: list[Path]) -> int:
    return sum(len(path.read_text().splitlines()) for path in paths)


def docstring_lines(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def code_lines(text: str) -> set[int]:
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_TOKENS:
            found.update(range(token.start[0], token.end[0] + 1))
    return found


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of fedsim that a file imports, within functions too, but not for types alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name}" for name in ("", *(alias.name for alias in node.names)))


def floors(home: Path) -> int:
    rooms: nx.DiGraph[str] = nx.DiGraph()
    for path in sources(home):
        steps = path.relative_to(home).with_suffix("").parts
        if steps == ("__init__",):
            continue
        rooms.add_node(steps[0])
        for name in imported(ast.parse(path.read_text())):
            top, _, rest = name.partition(".")
            below = rest.partition(".")[0]
            if (
                top == home.name
                and below not in ("", steps[0])
                and any(home.glob(f"{below}.py")) | (home / below).is_dir()
            ):
                rooms.add_edge(steps[0], below)
    return len(nx.dag_longest_path(nx.condensation(rooms)))


def checks_for_none(home: Path) -> int:
    asked = [
        (op, other)
        for path in sources(home / "rounds")
        if not _OUT_OF_ROUNDS & set(path.relative_to(home / "rounds").parts)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare)
        for op, other in zip(node.ops, node.comparators, strict=True)
    ]
    return sum(isinstance(op, ast.Is | ast.IsNot) and ast.unparse(other) == "None" for op, other in asked)


def most_parameters(trees: list[ast.Module]) -> int:
    """Return the parameters of the widest constructor that a class writes itself; selectors are kinds of a scenario."""
    return max(
        len([*inner.args.posonlyargs, *inner.args.args, *inner.args.kwonlyargs]) - 1
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and not any("Selector" in name for name in (node.name, *map(ast.unparse, node.bases)))
        for inner in node.body
        if isinstance(inner, ast.FunctionDef) and inner.name == "__init__"
    )


def run(checkout: Path, *words: str) -> str:
    """Return what a command of Python prints in a checkout that is imported first."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout


def of_a_round(checkout: Path) -> tuple[int, int]:
    said = run(checkout, "tests/tools/files_of_a_round.py")
    found = re.search(r"(\d+) files[^\d]+(\d+) calls", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def cases(checkout: Path, *words: str) -> int:
    said = run(checkout, "-m", "pytest", "--collect-only", "-q", "-n", "0", *words)
    found = re.search(r"(\d+)(?:/\d+)? tests collected", said)
    return int(found[1]) if found else 0


def seconds(checkout: Path, *words: str) -> float:
    begun = time.perf_counter()
    run(checkout, "-m", "pytest", "-q", *words)
    return round(time.perf_counter() - begun)


def measure(checkout: Path, *, with_cases: bool, with_seconds: bool) -> dict[str, float]:
    home = checkout / "fedsim"
    paths = sources(home)
    texts = [path.read_text() for path in paths]
    trees = [ast.parse(text) for text in texts]
    told = [docstring_lines(tree) for tree in trees]
    files, calls = of_a_round(checkout)
    below = [checkout / name for name in ("fedsim", "scenarios", "tests")]
    pages = [*checkout.glob("*.md"), *(page for folder in below for page in folder.rglob("*.md"))]
    found: dict[str, float] = {
        "lines": lines_of(paths),
        "code": sum(len(code_lines(text) - strings) for text, strings in zip(texts, told, strict=True)),
        "docstrings": sum(map(len, told)),
        "files": len(paths),
        "classes": sum(isinstance(node, ast.ClassDef) for tree in trees for node in ast.walk(tree)),
        "longest file": max(len(text.splitlines()) for text in texts),
        "floors": floors(home),
        "files of a round": files,
        "calls of a round": calls,
        "checks for None": checks_for_none(home),
        "most parameters": most_parameters(trees),
        "pages": lines_of(pages),
        "test lines": lines_of(sources(checkout / "tests")),
    }
    if with_cases:
        found |= {"default cases": cases(checkout), "all cases": cases(checkout, "-m", "")}
    if with_seconds:
        found |= {"default seconds": seconds(checkout), "all seconds": seconds(checkout, "-m", "")}
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
    console = Console(width=120)
    console.print(table)
    for row in next(iter(columns.values())):
        console.print(f"{row}: {MEANING[row]}", markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
