"""The command line: run, plot, report, check, list, data and store.

A wrong scenario, file or option ends in a paragraph on standard error and exit code 2, without a traceback; see
`fedsim.boundary`.
"""

import contextlib
import signal
import sys
import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from fedsim.boundary import guarded, show_tracebacks
from fedsim.errors import FedsimError, StoreWarning
from fedsim.inputs.bounds import MOST_SMOOTHING
from fedsim.inputs.files import check_path
from fedsim.inputs.plugins import imported_plugins, without_plugins
from fedsim.store_cli import store_app

app = typer.Typer(
    name="fedsim",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(store_app, name="store")


def _path(value: Path | None) -> Path | None:
    """Refuse a path that no file system takes."""
    return None if value is None else check_path(value, FedsimError)


def _paths(values: list[Path]) -> list[Path]:
    return [check_path(value, FedsimError) for value in values]


ScenarioFile = Annotated[Path, typer.Argument(metavar="FILE", callback=_path, help="A scenario in TOML.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="A.B=VALUE", help="Replace one value of the scenario; may be repeated."),
]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", callback=_path, help="Where real data sets lie (default: $FEDSIM_DATA).")
]
NoPlugins = Annotated[
    bool, typer.Option("--no-plugins", help="Import nothing that the file names as module:Class; refuse the file.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no table.")]


def main() -> None:
    """Run the command line and exit with its code."""
    warnings.showwarning = _show_warning
    sys.exit(guarded(app))


@app.callback()
def options(
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Print where an error came from (also: FEDSIM_TRACEBACK=1).")
    ] = False,
) -> None:
    """Simulate federated learning by discrete events: clients, networks, deadlines and trainings."""
    if traceback:
        show_tracebacks()


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Print a warning for users as errors are printed, and any other as usual."""
    shown = f"fedsim: {message}\n"
    if not issubclass(category, StoreWarning):
        shown = warnings.formatwarning(message, category, filename, lineno, line)
    (file or sys.stderr).write(shown)


@app.command()
def run(
    file: ScenarioFile,
    assignments: Assignments = None,
    out: Annotated[
        Path | None, typer.Option("--out", callback=_path, help="Folder of the run (default: runs/<name>).")
    ] = None,
    data_dir: DataDir = None,
    force: Annotated[
        bool, typer.Option("--force", help="Throw away the run that the folder holds: another one, or a finished one.")
    ] = False,
    executor: Annotated[
        str | None, typer.Option("--executor", help="What computes trainings (default: $FEDSIM_EXECUTOR, auto).")
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="Where the executor computes (default: $FEDSIM_DEVICE, cpu).")
    ] = None,
    precision: Annotated[str | None, typer.Option("--precision", help="float32 (default) or bfloat16.")] = None,
    store: Annotated[
        Path | None,
        typer.Option("--store", callback=_path, help="Folder of the store (default: $FEDSIM_STORE, the user's cache)."),
    ] = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Look nothing up and keep nothing.")] = False,
    keep_models: Annotated[
        str, typer.Option("--keep-models", help="Models that stay in the store: all, last or 'every N'.")
    ] = "all",
    save_models: Annotated[
        int | None,
        typer.Option("--save-models", metavar="N", min=1, help="Keep the model after each N-th round too."),
    ] = None,
    no_plugins: NoPlugins = False,
    quiet: Quiet = False,
) -> None:
    """Run a scenario; keep its tables, figures and summary in a folder."""
    from rich.console import Console

    from fedsim.results import read_summary, rows
    from fedsim.results import run as run_scenario
    from fedsim.results.places import replacing
    from fedsim.results.progress import RoundBar

    if store is not None and no_store:
        raise FedsimError("run: --store and --no-store exclude each other")
    scenario = _scenario(file, assignments, plugins=not no_plugins)
    for path, code in scenario.code().items():
        if code.unreadable:
            typer.echo(f"fedsim: {path}: {code.unreadable}; this run counts as another one in every process", err=True)
    folder = Path("runs") / scenario.name if out is None else out
    console = Console()
    try:
        with _asked_to_end(), RoundBar(scenario.name, scenario.rounds.count, console, quiet=quiet) as bar:
            run_scenario(
                scenario,
                folder,
                data_dir=data_dir,
                replace=force,
                on_round=bar.show,
                executor=executor,
                device=device,
                precision=cast(Any, precision),
                store=False if no_store else store,
                keeping=keep_models,
                save_models=save_models,
                tell=None if quiet else partial(console.print, soft_wrap=True, highlight=False, markup=False),
            )
    except KeyboardInterrupt as error:
        left = "the run before is still" if replacing(folder) else "the rounds so far are"
        typer.echo(f"fedsim: interrupted{_by(error)}; {left} in {folder}", err=True)
        raise typer.Exit(143 if error.args else 130) from None
    summary = read_summary(folder)
    for note in summary.get("notes", ()):
        typer.echo(f"fedsim: {note}", err=True)
    if quiet:
        return
    _print_table(f"{scenario.name} (seed {scenario.seed})", rows(summary))
    for written in sorted(folder.glob("*.png")):
        console.print(str(written), soft_wrap=True, highlight=False, markup=False)


@app.command()
def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", callback=_paths, help="Run folders.")],
    x: Annotated[str, typer.Option("--x", help="time or round.")] = "time",
    y: Annotated[str, typer.Option("--y", help="accuracy, loss, leakage or duration.")] = "accuracy",
    smoothing: Annotated[
        int, typer.Option("--smoothing", min=1, max=int(MOST_SMOOTHING.greatest), help="Window of a causal mean.")
    ] = 1,
    out: Annotated[Path, typer.Option("--out", callback=_path, help="File to write; its ending is its format.")] = Path(
        "runs/plot.png"
    ),
) -> None:
    """Draw one figure with a curve for each run."""
    from fedsim.history import draw
    from fedsim.results import read_run

    histories = [read_run(folder) for folder in runs]
    labels = _labels(runs)
    for i, (folder, history) in enumerate(zip(runs, histories, strict=True)):
        if history.unfinished is not None:
            typer.echo(f"fedsim: {folder}: this run is not whole: {history.unfinished}", err=True)
            labels[i] += " (not whole)"
    draw(histories, cast(Any, x), cast(Any, y), smoothing=smoothing, labels=labels, out=out)
    typer.echo(str(out))


@app.command()
def report(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", callback=_path, help="A run folder.")],
    deadlines_s: Annotated[
        list[float] | None, typer.Option("--deadline", metavar="S", help="Effect of this deadline; may be repeated.")
    ] = None,
    every_round: Annotated[bool, typer.Option("--rounds", help="Print the cause of each round's length.")] = False,
) -> None:
    """Print time and bits by fate, the causes of the rounds' lengths, and the effect of deadlines."""
    from fedsim.results import read_run
    from fedsim.results import report as report_of

    for page in report_of(read_run(run_folder), deadlines_s or (), every_round=every_round):
        _print_table(page.title, page.lines, page.header)


@app.command()
def check(file: ScenarioFile, assignments: Assignments = None, no_plugins: NoPlugins = False) -> None:
    """Check a scenario, and print it with all defaults.

    A kind of the form module:Class, or of an installed package, is a plug-in: to check it, its module is imported,
    which runs it. With --no-plugins nothing is imported, and such a file is refused.
    """
    before = imported_plugins()
    scenario = _scenario(file, assignments, plugins=not no_plugins)
    for module, where in imported_plugins().items() - before.items():
        typer.echo(f"fedsim: the file names a plug-in, and its module {module!r} ({where}) was imported", err=True)
    typer.echo(scenario.to_toml())
    typer.echo(f"# {file}: valid, digest {scenario.digest()}")


@app.command("list")
def list_kinds(
    sort: Annotated[str | None, typer.Argument(metavar="[SORT]", help="selectors, networks, ...")] = None,
) -> None:
    """List the kinds that may fill a slot of a scenario."""
    catalogues = _catalogues()
    if sort is None:
        _print_table("fedsim list SORT", [(name, ", ".join(c.kinds())) for name, c in catalogues.items()])
        return
    if sort not in catalogues:
        from fedsim.registry import suggest

        raise FedsimError(
            f"list: there is no sort {sort!r}{suggest(sort, catalogues)}; allowed: {', '.join(catalogues)}"
        )
    if sort == "selectors":
        _print_table(sort, _selectors(catalogues[sort]), ("kind", "what it is"), markup=True)
        return
    rows = [(kind, *_described(catalogues[sort], kind)) for kind in catalogues[sort].kinds()]
    if sort == "executors":  # no part of a scenario: its options are those of the command
        _print_table(sort, [row[:2] for row in rows], ("kind", "what it is"))
        return
    _print_table(sort, rows, ("kind", "what it is", "options"))


@app.command()
def data(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A data set.")] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch the data set named.")] = False,
    data_dir: DataDir = None,
) -> None:
    """List the data sets that are found in the data folder, or download one."""
    from fedsim.learning import DATASETS, data_folder
    from fedsim.learning.data.datasets import PUBLISHED

    folder = data_folder(data_dir)
    kinds = PUBLISHED if name is None else (name,)
    if download and name is None:
        raise FedsimError(f"data: --download needs the name of a data set; allowed: {', '.join(PUBLISHED)}")
    if name is not None and name not in PUBLISHED:
        raise FedsimError(f"data: there is no data set {name!r}; allowed: {', '.join(PUBLISHED)}")
    if download and name is not None:
        DATASETS.make(name).download(folder)
    _print_table(
        f"data sets in {folder}",
        [(kind, "found" if DATASETS.make(kind).available(folder) else "missing") for kind in kinds],
    )


def _scenario(file: Path, assignments: list[str] | None, *, plugins: bool) -> Any:
    """Return the scenario of a file; its parts of the form ``module:Class`` may lie beside it or in this folder."""
    from fedsim.scenario import Scenario, parse_assignment

    values = dict(parse_assignment(text) for text in assignments or [])
    if not plugins:
        with without_plugins():
            return Scenario.load(file, values)
    # At the end of the path, so that no installed package is hidden.
    sys.path += [str(folder) for folder in (file.resolve().parent, Path.cwd()) if str(folder) not in sys.path]
    return Scenario.load(file, values)


@contextlib.contextmanager
def _asked_to_end() -> Iterator[None]:
    """Let SIGTERM, which batch systems send before they kill, interrupt a run as Ctrl-C does."""

    def interrupt(number: int, _frame: object) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _by(error: KeyboardInterrupt) -> str:
    return f" ({error})" if error.args else ""


def _labels(runs: list[Path]) -> list[str]:
    """Return the shortest ends of the folders' paths that are all different."""
    for depth in range(1, max(len(run.parts) for run in runs) + 1):
        labels = ["/".join(run.parts[-depth:]) for run in runs]
        if len(set(labels)) == len(labels):
            return labels
    return [str(run) for run in runs]


def _catalogues() -> dict[str, Any]:
    from fedsim.devices import AVAILABILITIES, COMPUTE_TIMES, DROPOUTS, ENERGIES, HETEROGENEITY_LAWS
    from fedsim.learning import DATASETS, EXECUTORS, LEARNERS, MODELS, PARTITIONS, SERVER_OPTIMIZERS
    from fedsim.network import FADINGS, LATENCY_LAWS, NETWORKS, PATH_LOSSES, PLACEMENTS, RATES, SHADOWINGS
    from fedsim.network.cell.access import ACCESS_LATENCIES
    from fedsim.network.graph.access import ACCESSES
    from fedsim.network.medium.cell import SHARINGS
    from fedsim.network.medium.failures import FAILURES
    from fedsim.network.satellite.passes import PASSES
    from fedsim.network.topology.generators import LAYOUTS
    from fedsim.network.topology.mobility import MOBILITIES
    from fedsim.network.transport.transport import TRANSPORTS
    from fedsim.privacy import BUDGETS, MECHANISMS
    from fedsim.rounds import BACKHAULS, CLOUD_RULES, GROUPINGS, LATE, POLICIES
    from fedsim.rounds.aggregation.staleness import STALENESS
    from fedsim.selectors import SELECTORS

    return {
        "selectors": SELECTORS,
        "policies": POLICIES,
        "late-rules": LATE,
        "staleness-laws": STALENESS,
        "groupings": GROUPINGS,
        "edge-mergings": CLOUD_RULES,
        "backhauls": BACKHAULS,
        "networks": NETWORKS,
        "latency-laws": LATENCY_LAWS,
        "placements": PLACEMENTS,
        "path-losses": PATH_LOSSES,
        "shadowings": SHADOWINGS,
        "fadings": FADINGS,
        "rates": RATES,
        "sharings": SHARINGS,
        "access-latencies": ACCESS_LATENCIES,
        "transports": TRANSPORTS,
        "passes": PASSES,
        "topologies": LAYOUTS,
        "accesses": ACCESSES,
        "mobilities": MOBILITIES,
        "troubles": FAILURES,
        "compute-times": COMPUTE_TIMES,
        "spread-laws": HETEROGENEITY_LAWS,
        "availabilities": AVAILABILITIES,
        "dropouts": DROPOUTS,
        "energies": ENERGIES,
        "learners": LEARNERS,
        "datasets": DATASETS,
        "splits": PARTITIONS,
        "models": MODELS,
        "aggregators": SERVER_OPTIMIZERS,
        "executors": EXECUTORS,
        "budgets": BUDGETS,
        "mechanisms": MECHANISMS,
    }


def _described(catalogue: Any, kind: str) -> tuple[str, str]:
    what = (catalogue.load(kind).__doc__ or "").strip().partition("\n")[0]
    return what, ", ".join(catalogue.option_names(kind)) or "none"


def _selectors(catalogue: Any) -> list[tuple[str, str]]:
    """Return the kind of each selector, and its description, needs and communication in lines."""
    from rich.markup import escape

    from fedsim.selectors import SelectorInfo

    rows = []
    for kind in sorted(catalogue.kinds()):
        info, (what, options) = SelectorInfo.of(catalogue.load(kind)), _described(catalogue, kind)
        lines = {
            "needs to know": info.knowledge or "nothing but the round view",
            "communication": info.communication or "not stated",
            "options": options,
            "paper": info.paper or "not stated",
        }
        told = "\n".join(f"[bold]{name}[/bold]: {escape(text)}" for name, text in lines.items())
        rows.append((kind, f"{escape(what)}\n{told}"))
    return rows


def _print_table(
    title: str, lines: Iterable[tuple[str, ...]], header: tuple[str, ...] = (), *, markup: bool = False
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        *header,
        title=Text(title, style="table.title"),
        show_header=bool(header),
        title_justify="left",
        show_lines=markup,
    )
    if table.columns:
        table.columns[0].no_wrap = True
    for line in lines:
        table.add_row(*(cell if markup else Text(cell) for cell in line))
    Console().print(table)
