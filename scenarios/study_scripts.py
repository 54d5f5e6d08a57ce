"""What the scripts of this folder share: the command line, the runs of a study, tables and figures."""

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedsim import History, Scenario, Study, simulate, sweep
from fedsim.cli.boundary import guarded
from fedsim.history import save
from fedsim.studies.metrics import metric

Runs = dict[str, list[History]]
"""The runs of each variant, seed by seed."""
Of = str | Callable[[History], float]
Column = tuple[Of, str] | tuple[Of, str, Callable[[Any], float]]
"""A figure of a run, the format of its number, and how the numbers of seeds become one; the median by default."""


def command(main: Callable[..., None], about: str | None) -> None:
    """Run a script: the parameters of its function are its options, and its end is that of a command of fedsim."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(help=about)(main)
    sys.exit(guarded(app))


def study_of(script: str, seeds: int | None = None, **values: Any) -> Study:
    """Return the study of the TOML file beside a script with other sizes: values by dotted path with ``__``.

    A script's tables are of the runs as they are, so that none goes on to the horizon of the file's own metrics.
    """
    study = Study.load(Path(script).with_suffix(".toml"))
    base = study.base.replace({path.replace("__", "."): value for path, value in values.items()})
    return replace(study, base=base, seeds=study.seeds[:seeds], metrics=("mean_round_s",), horizon={})


def run(study: Study, out: Path, **options: Any) -> Runs:
    """Return all runs of a study, running what its folder lacks."""
    result = sweep(study, out=out, quiet=True, **options)
    return {variant: [result[variant, seed] for seed in study.seeds] for variant in study.arms}


def run_by_seed(seeds: Iterable[int], of_seed: Callable[[int], Study], out: Path, **options: Any) -> Runs:
    """Return all runs of a study that is another one for each seed, as with the deadline of the seed's crowd."""
    runs = Runs()
    for seed in seeds:
        for variant, (one,) in run(of_seed(seed).with_seeds([seed]), out / f"seed-{seed}", **options).items():
            runs.setdefault(variant, []).append(one)
    return runs


def with_deadline(base: Scenario, share: float, seed: int) -> Scenario:
    """Return a scenario under the deadline that a share of its crowd meets in a first round of all clients."""
    everyone = {"seed": seed, "selector": "all", "rounds": {"count": 1, "policy": "wait-for-all"}}
    first = simulate(base.replace({**everyone, "results.evaluate_every": 2}), store=False)
    took_s = first.column("participations", "end_s") - first.column("participations", "start_s")
    return base.replace({"rounds.policy": {"kind": "deadline", "deadline_s": float(np.quantile(took_s, share))}})


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table whose columns are as wide as their longest cell."""
    lines = [list(map(str, row)) for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def number(of: Of, history: History) -> float:
    """Return a figure of a run: a metric by its name, infinite where it is not reached, or what a function says."""
    if not isinstance(of, str):
        return float(of(history))
    found = metric(of).of(history)
    return found.value if found.reached else math.inf


def summary(runs: Runs, columns: Mapping[str, Column], head: str = "") -> None:
    """Print a row for each variant: figures of its runs, the median over seeds or another."""
    rows = []
    for name, histories in runs.items():
        row = [name]
        for of, form, *middle in columns.values():
            value = (middle or [np.median])[0](np.array([number(of, one) for one in histories]))
            row.append(format(value, form) if math.isfinite(value) else "never")
        rows.append(row)
    table([head, *columns], rows)


def times_to(targets: Iterable[float], form: str = ".3g") -> dict[str, Column]:
    """Return the columns of the seconds to accuracies."""
    return {f"s to {target:.0%}": (f"time_to_{100 * target:g}%", form) for target in targets}


def last_accuracy(history: History, evaluations: int = 10) -> float:
    return float(history.column("evaluations", "accuracy")[-evaluations:].mean())


def panels(number: int = 1, size: tuple[float, float] = (6.4, 4.2), **settings: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels side by side, and settings that all of them have."""
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    found = list(figure.subplots(1, number, squeeze=False)[0])
    for axes in found:
        axes.set(**settings)
        axes.grid(visible=True, alpha=0.3)
    return figure, found


def written(figures: Mapping[str, Figure], out: Path) -> None:
    """Write figures into a folder, and print where they lie."""
    print()
    for name, figure in figures.items():
        save(figure, out / name)
        print(out / name)
