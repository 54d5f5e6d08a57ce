"""A table of a paper and its figures: methods by seeds of one scenario, as a study that goes on where it was."""

import json
import math
from argparse import Namespace
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from matplotlib.figure import Figure

from fedsim import Scenario, Study
from fedsim.history import History
from fedsim.studies.running.records import INDEX, Records
from fedsim.studies.sweeping import run_study
from paper_runs.command import engine
from paper_runs.curves import written
from paper_runs.tables import markdown, with_deviation, write

Values = Mapping[str, Any]
Measured = Mapping[str, Any]
"""What is measured of a run: numbers by head of a column, and curves."""
Found = Mapping[str, Sequence[Measured]]
"""What is measured of each method's runs, seed by seed."""
SECONDS: Final = "processor s"
_MEASURED: Final = "numbers.json"


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
    if not 0.0 < scale <= 1.0:
        raise ValueError(f"scale: {scale!r} is not allowed; it must be above 0 and at most 1")
    return scenario.replace({"rounds.count": max(1, round(scale * scenario.rounds.count))})


def first_at(x: Sequence[float], values: Sequence[float], target: float) -> float:
    """Return where a curve is first at a target or above it; infinite if it never is."""
    return next((float(at) for at, value in zip(x, values, strict=True) if value >= target), math.inf)


def made(
    table: Table, asked: Namespace, *, once: Collection[str] = (), by_seed: bool = False, thin: bool = False
) -> str:
    """Run what folders lack of a table, draw its figures, and return its part of the page.

    Methods of ``once`` have one seed; with ``by_seed`` each seed is a study. A run that fails, as its data are absent,
    stops no other.
    """
    seeds = range(table.base.seed, table.base.seed + asked.seeds)
    several = {name: of for name, of in table.methods.items() if name not in once}
    single = {name: of for name, of in table.methods.items() if name in once}
    batches = [(table.name, several, seeds), (f"{table.name}-once", single, seeds[:1])]
    if by_seed:
        batches = [(f"{table.name}-seed-{seed}", several, range(seed, seed + 1)) for seed in seeds]
    found: dict[str, list[Measured]] = {method: [] for method in table.methods}
    missing = set[str]()
    for name, methods, some in batches:
        if methods:
            missing |= _run(table, methods, some, found, asked.out / "runs" / name, asked, thin=thin)
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
        for file, draw in table.figures.items():
            if (figure := draw(ended)) is not None:
                written(figure, asked.out / file)
    return "\n".join(lines)


def _run(
    table: Table,
    methods: Mapping[str, Values],
    seeds: Sequence[int],
    found: Mapping[str, list[Measured]],
    folder: Path,
    asked: Namespace,
    *,
    thin: bool,
) -> set[str]:
    """Add what is measured of a study's runs, and return why runs are missing; what is thin keeps no other tables."""
    study, file = Study.of(table.base, variants=methods, seeds=seeds, name=folder.name), folder / _MEASURED
    known: dict[str, Measured] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    left = {point.variant: methods[point.variant] for point in study.points if point.digest not in known}
    why: set[str] = set()
    if left:
        some = Study.of(table.base, variants=left, seeds=seeds, name=folder.name)
        result, records = run_study(some, folder, engine(asked)), Records(folder)
        why = set(result.failures.values())
        for point in some.points:
            done = records.done(point.digest)
            if done is not None and not done.error:
                known[point.digest] = {**table.measure(result[point.variant, point.seed]), SECONDS: done.cpu_s}
        if thin:
            write(json.dumps(known, indent=1, default=lambda value: value.tolist()), file)
            for name in (INDEX, "tables.arrows"):
                (folder / name).unlink(missing_ok=True)
    for point in study.points:
        if point.digest in known:
            found[point.variant].append(known[point.digest])
    return why
