"""What the scripts of this folder share: sizes from the command line, the runs of a study, tables and figures."""

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedsim import History, Scenario, Study, StudyResult, simulate, sweep
from fedsim.history import save
from fedsim.studies.metrics import metric

HERE = Path(__file__).parent
Runs = dict[str, list[History]]
"""The runs of each variant, seed by seed."""
Of = str | Callable[[History], float]
Column = tuple[Of, str] | tuple[Of, str, Callable[[Any], float]]
"""A figure of a run, the format of its number, and how the numbers of seeds become one; the median by default."""


def sizes(script: str, about: str | None, *, writes: bool = True, **defaults: Any) -> argparse.Namespace:
    """Return what the command line says of a script: its folder if it writes, and values with these defaults."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    for name, value in defaults.items():
        how: dict[str, Any] = {"action": "store_true"} if value is False else {"type": type(value), "default": value}
        parser.add_argument(f"--{name.replace('_', '-')}", **how)
    if writes:
        parser.add_argument("--out", type=Path, default=Path("runs") / Path(script).stem)
    return parser.parse_args()


def study_of(script: str, seeds: int | None = None, **values: Any) -> Study:
    """Return the study of the TOML file beside a script with other sizes: values by dotted path with ``__``.

    A script's tables are of the runs as they are, so that none goes on to the horizon of the file's own metrics.
    """
    study = Study.load(Path(script).with_suffix(".toml"))
    base = study.base.replace({path.replace("__", "."): value for path, value in values.items()})
    return replace(study, base=base, seeds=study.seeds[:seeds], metrics=("mean_round_s",), horizon={})


def whole(study: Study, out: Path, **options: Any) -> StudyResult:
    """Run what a folder lacks of a study; end with the first failure."""
    result = sweep(study, out=out, quiet=True, **options)
    for (variant, seed), why in result.failures.items():
        sys.exit(f"{variant}, seed {seed}: {why}")
    return result


def run(study: Study, out: Path, **options: Any) -> Runs:
    """Return all runs of a study, running what its folder lacks."""
    result = whole(study, out, **options)
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


def told(value: float, form: str = ".3g") -> str:
    """Return a number as text, and "never" for one that is not finite."""
    return format(value, form) if math.isfinite(value) else "never"


def number(of: Of, history: History) -> float:
    """Return a figure of a run: a metric by its name, infinite where it is not reached, or what a function says."""
    if not isinstance(of, str):
        return float(of(history))
    found = metric(of).of(history)
    return found.value if found.reached else math.inf


def summary(runs: Runs, columns: Mapping[str, Column], head: str = "") -> dict[str, list[float]]:
    """Print a row for each variant, and return its numbers: figures of its runs, the median over seeds or another."""
    found = {}
    for name, of in runs.items():
        values = [[number(column[0], one) for one in of] for column in columns.values()]
        middles = [column[2] if len(column) > 2 else np.median for column in columns.values()]
        found[name] = [float(middle(np.array(one))) for middle, one in zip(middles, values, strict=True)]
    forms = [column[1] for column in columns.values()]
    table([head, *columns], [[name, *map(told, of, forms)] for name, of in found.items()])
    return found


def times_to(targets: Iterable[float], form: str = ".3g") -> dict[str, Column]:
    """Return the columns of the seconds to accuracies."""
    return {f"s to {target:.0%}": (f"time_to_{100 * target:g}%", form) for target in targets}


def last_accuracy(history: History, evaluations: int = 10) -> float:
    return float(history.column("evaluations", "accuracy")[-evaluations:].mean())


def panels(number: int = 1, size: tuple[float, float] = (6.4, 4.0), **settings: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels side by side, and settings that all of them have."""
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    found = [figure.add_subplot(1, number, i + 1) for i in range(number)]
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
