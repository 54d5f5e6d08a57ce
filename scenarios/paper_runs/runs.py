"""A table of a paper and its figures: methods by seeds of one scenario, as a study that goes on where it was."""

import json
import math
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from matplotlib.figure import Figure
from study_scripts import written

from fedsim import Scenario, Study
from fedsim.history import History
from fedsim.studies.running.engine import Engine
from fedsim.studies.running.records import INDEX, Records
from fedsim.studies.sweeping import run_study
from paper_runs.tables import markdown, with_deviation, write

Values = Mapping[str, Any]
Measured = Mapping[str, Any]
"""What is measured of a run: numbers by head of a column, and curves."""
Found = Mapping[str, Sequence[Measured]]
"""What is measured of each method's runs, seed by seed."""
SECONDS: Final = "processor s"


class Row(NamedTuple):
    method: str
    runs: Sequence[Measured]
    found: Found


Column = tuple[str, Callable[[Row], str]]
"""The head of a column, and the cell of a row."""


@dataclass(frozen=True)
class Table:
    """One table of a page: a scenario, what each method changes of it, what is measured of a run, and what is shown."""

    name: str
    title: str
    base: Scenario
    methods: Mapping[str, Values]
    measure: Callable[[History], Measured]
    columns: Sequence[Column]
    figures: Mapping[str, Callable[[Found], Figure | None]]
    about: str = ""


def mean(head: str, digits: int, unit: str = "") -> Column:
    """Return a column of means over the seeds with their deviations, of runs of which its head is measured."""
    return head, lambda row: with_deviation([run[head] for run in row.runs if head in run], digits, unit)


def scaled(scenario: Scenario, scale: float) -> Scenario:
    """Return the first part of a run: as many rounds as a share of its own says, at least one."""
    return scenario.replace({"rounds.count": max(1, round(scale * scenario.rounds.count))})


def first_at(x: Iterable[float], values: Iterable[float], target: float) -> float:
    """Return where a curve is first at a target or above it; infinite if it never is."""
    return next((float(at) for at, value in zip(x, values, strict=True) if value >= target), math.inf)


def made(table: Table, asked: Namespace, *, once: Collection[str] = (), thin: bool = False) -> str:
    """Run what a folder lacks of a table, draw its figures, and return its part of the page.

    Methods of ``once`` have one seed. What is thin keeps the numbers of each seed's runs and no tables. A run that
    fails, as its data are absent, stops no other.
    """
    seeds = range(table.base.seed, table.base.seed + asked.seeds)
    several = [method for method in table.methods if method not in once]
    parts: list[tuple[Collection[str], Sequence[int]]] = [(once, seeds[:1]), (several, seeds)]
    if thin:
        parts = [(methods, [seed]) for methods, some in parts for seed in some]
    found: dict[str, list[Measured]] = {method: [] for method in table.methods}
    missing = set[str]()
    for methods, some in parts:
        digests = {name: table.base.replace(of).digests(some) for name, of in table.methods.items() if name in methods}
        known, why = _run(table, digests, some, asked, thin=thin)
        missing |= why
        for method, own in digests.items():
            found[method] += [known[digest] for digest in own if digest in known]
    lines = [f"### {table.title}\n"]
    lines += [f"Missing (`fedsim data` tells where data are to be had): {why}\n" for why in sorted(missing)]
    ended = {method: runs for method, runs in found.items() if runs}
    if ended:
        last: list[Column] = [
            ("seeds", lambda row: str(len(row.runs))),
            (SECONDS, lambda row: f"{sum(run[SECONDS] for run in row.runs):.0f}"),
        ]
        columns = [*table.columns, *last]
        rows = [[cell(Row(method, runs, ended)) for _, cell in columns] for method, runs in ended.items()]
        lines += [f"{table.base.rounds.count} rounds{table.about}.\n", markdown([head for head, _ in columns], rows)]
        drawn = {file: draw(ended) for file, draw in table.figures.items()}
        written({file: figure for file, figure in drawn.items() if figure is not None}, asked.out)
    return "\n".join(lines)


def _run(
    table: Table, digests: Mapping[str, Sequence[str]], seeds: Sequence[int], asked: Namespace, *, thin: bool
) -> tuple[Mapping[str, Measured], set[str]]:
    """Return what is measured of a study's runs by their digests, and why runs are missing.

    Methods that describe the same runs share them.
    """
    folder = asked.out / "runs" / table.name
    file = folder / "numbers.json"
    known: dict[str, Measured] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    lacking = {tuple(own): name for name, own in digests.items() if not known.keys() >= set(own)}
    if not lacking:
        return known, set()
    study = Study.of(
        table.base, variants={name: table.methods[name] for name in lacking.values()}, seeds=seeds, name=table.name
    )
    engine = Engine("processes", asked.workers, asked.store, asked.data_dir, asked.executor)
    result, records = run_study(study, folder, engine), Records(folder)
    for point in study.points:
        done = records.done(point.digest)
        if done is not None and not done.error:
            known[point.digest] = {**table.measure(result[point.variant, point.seed]), SECONDS: done.cpu_s}
    if thin:
        write(json.dumps(known, indent=1, default=lambda value: value.tolist()), file)
        for name in (INDEX, "tables.arrows"):
            (folder / name).unlink(missing_ok=True)
    return known, set(result.failures.values())
