"""The commands ``fedsim plot`` and ``fedsim report``, which read run folders."""

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from fedsim.cli.options import each_path, one_path
from fedsim.cli.printing import print_table


def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", callback=each_path, help="Run folders.")],
    x: Annotated[str, typer.Option("--x", help="time or round.")] = "time",
    y: Annotated[
        str,
        typer.Option(
            "--y", help="accuracy, loss, leakage, mean_leakage, duration or a metric; clients: their accuracies."
        ),
    ] = "accuracy",
    smoothing: Annotated[int, typer.Option("--smoothing", min=1, max=10**6, help="Window of a causal mean.")] = 1,
    out: Annotated[
        Path, typer.Option("--out", callback=one_path, help="File to write; its ending is its format.")
    ] = Path("runs/plot.png"),
) -> None:
    """Draw one figure with a curve for each run.

    With --y clients the curve is that of the clients' accuracies on their own samples, in ascending order.
    """
    from fedsim.history import draw, draw_clients
    from fedsim.results import read_run

    histories = [read_run(folder) for folder in runs]
    labels = _labels(runs)
    for i, (folder, history) in enumerate(zip(runs, histories, strict=True)):
        if history.unfinished is not None:
            typer.echo(f"fedsim: {folder}: this run is not whole: {history.unfinished}", err=True)
            labels[i] += " (not whole)"
    if y == "clients":
        draw_clients(histories, labels=labels, out=out)
    else:
        draw(histories, cast(Any, x), cast(Any, y), smoothing=smoothing, labels=labels, out=out)
    typer.echo(str(out))


def report(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", callback=one_path, help="A run folder.")],
    deadlines_s: Annotated[
        list[float] | None, typer.Option("--deadline", metavar="S", help="Effect of this deadline; may be repeated.")
    ] = None,
    every_round: Annotated[bool, typer.Option("--rounds", help="Print the cause of each round's length.")] = False,
) -> None:
    """Print time and bits by fate, the causes of the rounds' lengths, and the effect of deadlines."""
    from fedsim.results import read_run
    from fedsim.results import report as report_of

    for page in report_of(read_run(run_folder), deadlines_s or (), every_round=every_round):
        print_table(page.title, page.lines, page.header)


def _labels(runs: list[Path]) -> list[str]:
    """Return the shortest ends of the folders' paths that are all different."""
    for depth in range(1, max(len(run.parts) for run in runs) + 1):
        labels = ["/".join(run.parts[-depth:]) for run in runs]
        if len(set(labels)) == len(labels):
            return labels
    return [str(run) for run in runs]
