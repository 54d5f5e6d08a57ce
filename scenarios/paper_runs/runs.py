"""A table of a paper and its figures: methods by seeds of one scenario, as a study that goes on where it was."""

import json
from argparse import Namespace
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from matplotlib.figure import Figure
from study_scripts import number, written

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


def mean(head: str, digits: int, unit: str = "") -> Column:
    """Return a column of means over the seeds with their deviations, of runs of which its head is measured."""
    return head, lambda row: with_deviation([run[head] for run in row.runs if head in run], digits, unit)


Described = Sequence[Mapping[str, Any]]
"""Columns of a TOML file by head, each with one of: digits, of a mean; ``paper``, a column of its numbers; ``cell``."""


def columns(
    described: Described, cells: Mapping[str, Callable[[Row], str]], paper: Mapping[str, Mapping[str, str]]
) -> list[Column]:
    """Return columns with the study's own cells by name, and with what is reported of the method of a row."""

    def column(one: Mapping[str, Any]) -> Column:
        if "paper" in one:
            return one["head"], lambda row: paper.get(row.method, {}).get(one["paper"], "-")
        return (
            (one["head"], cells[one["cell"]])
            if "cell" in one
            else mean(one["head"], one["digits"], one.get("unit", ""))
        )

    return [column(one) for one in described]


def metrics(described: Described, target: float, history: History) -> dict[str, Any]:
    """Return the curve of a run, and the metrics that columns name, in which ``{target}`` stands for an accuracy."""
    names = {one["head"]: one["metric"].format(target=f"{100 * target:g}") for one in described if "metric" in one}
    found: dict[str, Any] = {head: number(name, history) for head, name in names.items()}
    return {"curve": history.curve("round", "accuracy"), **found}


def scaled(scenario: Scenario, scale: float) -> Scenario:
    """Return the first part of a run: as many rounds as a share of its own says, at least one."""
    return scenario.replace({"rounds.count": max(1, round(scale * scenario.rounds.count))})


def made(table: Table, asked: Namespace, *, once: Collection[str] = (), thin: bool = False) -> str:
    """Run what a folder lacks of a table, draw its figures, and return its part of the page.

    Methods of ``once`` have one seed. What is thin keeps the numbers of each seed's runs and no tables. A run that
    fails, as its data are absent, stops no other.
    """
    seeds = range(table.base.seed, table.base.seed + asked.seeds)
    single, several = ([name for name in table.methods if (name in once) is one] for one in (True, False))
    parts: list[tuple[str, Sequence[str], Sequence[int]]] = [("-once", single, seeds[:1]), ("", several, seeds)]
    if thin:
        parts = [(end, methods, [seed]) for end, methods, some in parts for seed in some]
    found: dict[str, list[Measured]] = {method: [] for method in table.methods}
    digests, missing = dict[tuple[str, int], str](), set[str]()
    for name, of in table.methods.items():
        digests |= {(name, seed): one for seed, one in zip(seeds, table.base.replace(of).digests(seeds), strict=True)}
    for end, methods, some in parts:
        folder = asked.out / "runs" / f"{table.name}{end}"
        known, why = _run(table, digests, methods, some, folder, asked, thin=thin)
        missing |= why
        for method in methods:
            found[method] += [known[digests[method, seed]] for seed in some if digests[method, seed] in known]
    lines = [f"### {table.title}\n"]
    lines += [f"Missing (`fedsim data` tells where data are to be had): {why}\n" for why in sorted(missing)]
    ended = {method: runs for method, runs in found.items() if runs}
    if ended:
        columns: list[Column] = [
            *table.columns,
            ("seeds", lambda row: str(len(row.runs))),
            (SECONDS, lambda row: f"{sum(run[SECONDS] for run in row.runs):.0f}"),
        ]
        rows = [[cell(Row(method, runs, ended)) for _, cell in columns] for method, runs in ended.items()]
        about = f"{table.base.rounds.count} rounds; the target is {100 * table.base.results.target_accuracy:g} %.\n"
        lines += [about, markdown([head for head, _ in columns], rows)]
        written({file: one for file, draw in table.figures.items() if (one := draw(ended)) is not None}, asked.out)
    return "\n".join(lines)


def _run(
    table: Table,
    digests: Mapping[tuple[str, int], str],
    methods: Sequence[str],
    seeds: Sequence[int],
    folder: Path,
    asked: Namespace,
    *,
    thin: bool,
) -> tuple[Mapping[str, Measured], set[str]]:
    """Return what is measured of some runs of a table by their digests, and why runs are missing.

    Methods that describe the same runs share them.
    """
    file = folder / "numbers.json"
    known: dict[str, Measured] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    wanted = {tuple(digests[name, seed] for seed in seeds): name for name in methods}
    lacking = {name: table.methods[name] for own, name in wanted.items() if not known.keys() >= set(own)}
    if not lacking:
        return known, set()
    study = Study.of(table.base, variants=lacking, seeds=seeds, name=table.name)
    engine = Engine("processes", asked.workers, asked.store, asked.data_dir, asked.executor)
    result, records = run_study(study, folder, engine), Records(folder)
    for point in study.points:
        done = records.done(point.digest)
        if done is not None and not done.error:
            known[point.digest] = {**table.measure(result[point.variant, point.seed]), SECONDS: done.cpu_s}
    if thin:
        write(json.dumps(known, indent=1, default=lambda value: value.tolist()), file)
        if not any(records.longest(digest) for digest in digests.values() if digest not in known):
            for name in (INDEX, "tables.arrows"):
                (folder / name).unlink(missing_ok=True)
    return known, set(result.failures.values())
