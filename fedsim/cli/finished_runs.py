"""The commands ``fedsim plot`` and ``fedsim report``, which read run folders."""

import shlex
from collections.abc import Mapping
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
            "--y",
            help="accuracy, loss, leakage, mean_leakage, duration, energy, a metric; clients: their accuracies.",
        ),
    ] = "accuracy",
    smoothing: Annotated[
        int | None,
        typer.Option("--smoothing", min=1, max=10**6, help="Window of a causal mean (default: the scenario's)."),
    ] = None,
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
    # One run has the figure of its folder.
    labels = [histories[0].name] if len(runs) == 1 else _labels(runs)
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
    from fedsim.results import read_run, sentences
    from fedsim.results import report as report_of
    from fedsim.results.report import overview

    name, *names = _labels(runs)
    history, *others = (read_run(folder) for folder in runs)
    beside, asked = dict(zip(names, others, strict=True)), deadlines_s or ()
    print_lines(sentences(history, asked, beside, _Command(runs[0])))
    pages = overview(history, name, beside)
    if tables or every_round:
        pages = report_of(history, asked, every_round=every_round, name=name, beside=beside)
    for page in pages:
        print_table(page.title, page.lines, page.header)


class _Command:
    """The command that runs the scenario of a folder with other values, in a folder beside it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, values: Mapping[str, Any], name: str) -> str:
        """Return the command."""
        changes = " ".join(f"--set {path}={value}" for path, value in values.items())
        file, out = shlex.quote(str(self._folder / "scenario.toml")), shlex.quote(f"{self._folder}-{name}")
        return f"fedsim run {file} {changes} --out {out}"


def _labels(runs: list[Path]) -> list[str]:
    """Return the shortest ends of the folders' paths that are all different."""
    for depth in range(1, max(len(run.parts) for run in runs) + 1):
        labels = ["/".join(run.parts[-depth:]) for run in runs]
        if len(set(labels)) == len(labels):
            return labels
    return [str(run) for run in runs]
