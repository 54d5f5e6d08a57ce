"""What the scripts of this folder share: sizes from the command line, the runs of a study, tables and figures."""

import argparse
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedsim import History, Study, sweep
from fedsim.history import save

HERE = Path(__file__).parent
Runs = dict[str, list[History]]
"""The runs of each variant, seed by seed."""


def sizes(script: str, about: str | None, **defaults: Any) -> argparse.Namespace:
    """Return what the command line says of a script: its folder, and numbers with these defaults."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--out", type=Path, default=Path("runs") / Path(script).stem)
    return parser.parse_args()


def study_of(script: str, seeds: int | None = None, **values: Any) -> Study:
    """Return the study of the TOML file beside a script with other sizes: values by dotted path with ``__``.

    A script's tables are of the runs as they are, so that none goes on to the horizon of the file's own metrics.
    """
    study = Study.load(Path(script).with_suffix(".toml"))
    base = study.base.replace({path.replace("__", "."): value for path, value in values.items()})
    return replace(study, base=base, seeds=study.seeds[:seeds], metrics=("mean_round_s",), horizon={})


def run(study: Study, out: Path, **options: Any) -> Runs:
    """Run what a folder lacks of a study, and return all runs; end with the first failure."""
    result = sweep(study, out=out, quiet=True, **options)
    for (variant, seed), why in result.failures.items():
        sys.exit(f"{variant}, seed {seed}: {why}")
    return {variant: [result[variant, seed] for seed in study.seeds] for variant in study.arms}


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table whose columns are as wide as their longest cell."""
    lines = [list(map(str, row)) for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def told(value: float | None, form: str = ".3g") -> str:
    """Return a number as text, and "never" for one that is infinite or none."""
    return "never" if value is None or not math.isfinite(value) else format(value, form)


def seconds_to(history: History, target: float) -> float:
    """Return the first second at which an evaluation reaches an accuracy; infinity for never."""
    reached_s = history.time_to_accuracy(target)
    return math.inf if reached_s is None else reached_s


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
