"""The commands ``fedsim plot`` and ``fedsim report``, which read run folders."""

import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from fedsim.cli.options import each_path, path_option
from fedsim.cli.printing import print_table
from fedsim.errors import FedsimError

if TYPE_CHECKING:
    from fedsim.history import History


def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", callback=each_path, help="Run folders.")],
    x: Annotated[str, typer.Option("--x", help="time or round; of several seeds bits and joules too.")] = "time",
    y: Annotated[
        str,
        typer.Option(
            "--y", help="accuracy, loss, leakage, mean_leakage, duration, energy, a metric; clients: their accuracies."
        ),
    ] = "accuracy",
    smoothing: Annotated[
        int | None,
        typer.Option("--smoothing", min=1, max=10**6, help="Window of a causal mean (default: the scenario's)."),
    ] = None,
    out: Annotated[Path, path_option("--out", "File to write; its ending is its format.")] = Path("runs/plot.png"),
) -> None:
    """Draw one figure with a curve for each run; runs that differ in their seed alone are one mean with a band.

    With --y clients the curve is that of the clients' accuracies on local test samples, in ascending order.
    """
    from fedsim.history import draw, draw_clients
    from fedsim.results import read_run

    histories = [read_run(folder) for folder in runs]
    # One run has the figure of its folder.
    labels = [histories[0].name] if len(runs) == 1 else _labels(runs)
    for i, (folder, history) in enumerate(zip(runs, histories, strict=True)):
        if history.unfinished is not None:
            typer.echo(f"fedsim: {folder}: this run is not whole: {history.unfinished}", err=True)
            labels[i] += " (not whole)"
    if y == "clients":
        draw_clients(histories, labels=labels, out=out)
    elif (variants := _by_variant(histories)) is not None:
        from fedsim.studies.figures.bands import draw_bands

        draw_bands(variants, x, y, next(iter(variants)), smoothing=smoothing, out=out)
    else:
        draw(histories, cast(Any, x), cast(Any, y), smoothing=smoothing, labels=labels, out=out)
    typer.echo(str(out))


def _by_variant(histories: "list[History]") -> "dict[str, dict[int, History]] | None":
    """Return runs by variant and seed; None where no variant has several seeds, or not all scenarios are known."""
    from fedsim.studies.folders import arms_of, grouped

    if len(histories) < 2 or len({history.seed for history in histories}) < 2:
        return None
    try:
        variants = grouped(histories, arms_of(histories))
    except FedsimError:
        return None
    return variants if any(len(of) > 1 for of in variants.values()) else None


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", callback=each_path, help="A run folder, and others to compare with."),
    ],
    deadlines_s: Annotated[
        list[float] | None, typer.Option("--deadline", metavar="S", help="Effect of this deadline; may be repeated.")
    ] = None,
    tables: Annotated[
        bool, typer.Option("--tables", help="Print all tables: fates, causes, clients, fairness, deadlines.")
    ] = False,
    every_round: Annotated[
        bool, typer.Option("--rounds", help="Print all tables, and the cause of each round.")
    ] = False,
) -> None:
    """Say why a run is as fast as it is: rounds and their seconds, who was lost, the effect of deadlines.

    With several runs, say which factor makes the difference between the first and each other one.
    """
    from fedsim.cli.printing import print_lines
    from fedsim.results import read_run, report as report_of, sentences
    from fedsim.results.report import overview

    name, *names = _labels(runs)
    history, *others = (read_run(folder) for folder in runs)
    beside, asked = dict(zip(names, others, strict=True)), deadlines_s or ()
    print_lines(sentences(history, asked, beside, partial(_command, runs[0])))
    pages = overview(history, name, beside)
    if tables or every_round:
        pages = report_of(history, asked, every_round=every_round, name=name, beside=beside)
    for page in pages:
        print_table(page.title, page.lines, page.header)


def _command(folder: Path, values: Mapping[str, Any], name: str) -> str:
    changes = " ".join(f"--set {path}={value}" for path, value in values.items())
    file, out = shlex.quote(str(folder / "scenario.toml")), shlex.quote(f"{folder}-{name}")
    return f"fedsim run {file} {changes} --out {out}"


def _labels(runs: list[Path]) -> list[str]:
    """Return the shortest ends of the folders' paths that are all different."""
    for depth in range(1, max(len(run.parts) for run in runs) + 1):
        labels = ["/".join(run.parts[-depth:]) for run in runs]
        if len(set(labels)) == len(labels):
            return labels
    return [str(run) for run in runs]
