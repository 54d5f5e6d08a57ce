"""The commands ``fedsim run`` and ``fedsim check``, which take a scenario."""

import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, cast

import typer

from fedsim.cli.options import Assignments, DataDir, each_once, one_path, path_option
from fedsim.cli.printing import print_notes, print_table
from fedsim.errors import FedsimError, RunError
from fedsim.inputs.plugins import imported_plugins, look_in, without_plugins

if TYPE_CHECKING:
    from fedsim.rounds import Progress

ScenarioFile = Annotated[Path, typer.Argument(metavar="FILE", callback=one_path, help="A scenario in TOML.")]
NoPlugins = Annotated[
    bool, typer.Option("--no-plugins", help="Import nothing that the file names as module:Class; refuse the file.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no table.")]


def run(
    file: ScenarioFile,
    assignments: Assignments = None,
    out: Annotated[Path | None, path_option("--out", "Folder of the run (default: runs/<name>).")] = None,
    data_dir: DataDir = None,
    force: Annotated[
        bool, typer.Option("--force", help="Throw away the run that the folder holds: another one, or a finished one.")
    ] = False,
    executor: Annotated[
        str | None, typer.Option("--executor", help="What computes trainings (default: $FEDSIM_EXECUTOR, auto).")
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="Where the executor computes (default: $FEDSIM_DEVICE, by executor).")
    ] = None,
    precision: Annotated[str | None, typer.Option("--precision", help="float32 (default) or bfloat16.")] = None,
    fast: Annotated[
        bool | None, typer.Option("--fast", help="Let bits differ from run to run where that saves time.")
    ] = None,
    store: Annotated[
        Path | None, path_option("--store", "Folder of the store (default: $FEDSIM_STORE, the user's cache).")
    ] = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Look nothing up and keep nothing.")] = False,
    keep_models: Annotated[
        str, typer.Option("--keep-models", help="Models that stay in the store: all, last or 'every N'.")
    ] = "all",
    save_models: Annotated[
        int | None, typer.Option("--save-models", metavar="N", min=1, help="Keep the model after each N-th round too.")
    ] = None,
    no_plugins: NoPlugins = False,
    quiet: Quiet = False,
) -> None:
    """Run a scenario; keep its tables, figures and summary in a folder."""
    from rich.console import Console

    from fedsim.results import read_summary, rows, run as run_scenario
    from fedsim.results.places import replacing
    from fedsim.results.progress import RoundBar

    if store is not None and no_store:
        raise FedsimError("run: --store and --no-store exclude each other")
    scenario = load_scenario(file, assignments, plugins=not no_plugins)
    for path, code in scenario.code().items():
        if code.unreadable:
            print_notes(f"{path}: {code.unreadable}; this run counts as another one in every process")
    tell_changed(file.parent, scenario.files())
    folder = Path("runs") / scenario.name if out is None else out
    console = Console()

    said: list[str] = []

    def tell(sentence: str) -> None:
        said.append(sentence)
        console.print(sentence, soft_wrap=True, highlight=False, markup=False)

    def after_round(progress: "Progress") -> None:
        interrupts.raise_lost()
        bar.show(progress)

    try:
        with _Interrupts() as interrupts, RoundBar(scenario.name, scenario.rounds.count, console, quiet=quiet) as bar:
            run_scenario(
                scenario,
                folder,
                data_dir=data_dir,
                replace=force,
                on_round=after_round,
                executor=executor,
                device=device,
                precision=cast(Any, precision),
                fast=fast,
                store=False if no_store else store,
                keeping=keep_models,
                save_models=save_models,
                tell=None if quiet else tell,
            )
    except KeyboardInterrupt as error:
        left = "the run before is still" if replacing(folder) else "the rounds so far are"
        by = f" ({error})" if error.args else ""
        print_notes(f"interrupted{by}; {left} in {folder}")
        raise typer.Exit(143 if error.args else 130) from None
    summary = read_summary(folder)
    print_notes(*(note for note in summary.get("notes", ()) if note not in said))
    if quiet:
        return
    print_table(f"{scenario.name} (seed {scenario.seed})", rows(summary))
    for written in sorted(folder.glob("*.png")):
        console.print(str(written), soft_wrap=True, highlight=False, markup=False)


def tell_changed(folder: Path, files: dict[str, str]) -> None:
    """Say which files had another content in the run that a folder holds, if it holds one."""
    from fedsim.results.holding import changed_files
    from fedsim.results.state import read_state

    with suppress(RunError):
        for path in changed_files(read_state(folder), files):
            print_notes(f"{path}: the content of this file has changed since the run in {folder}")


def check(file: ScenarioFile, assignments: Assignments = None, no_plugins: NoPlugins = False) -> None:
    """Check a scenario and the tables that it names, and print it with all defaults.

    A kind of the form module:Class, or of an installed package, is a plug-in: to check it, its module is imported,
    which runs it. With --no-plugins nothing is imported, and such a file is refused. Where nothing is learned,
    times are held against deadlines, as before a run.
    """
    from fedsim.learning.timing_only import NoLearning
    from fedsim.scenario.disclosure import remarks_of
    from fedsim.scenario.doubts import doubts_of
    from fedsim.scenario.reach import MOST_CLIENTS
    from fedsim.scenario.tables_of import read_tables
    from fedsim.simulation import Simulation

    before = imported_plugins()
    scenario = load_scenario(file, assignments, plugins=not no_plugins)
    for module, where in imported_plugins().items() - before.items():
        print_notes(f"the file names a plug-in, and its module {module!r} ({where}) was imported")
    scenario.check_files()
    if isinstance(scenario.learning, NoLearning) and scenario.crowd.clients <= MOST_CLIENTS and not scenario.code():
        known = Simulation(scenario, store=False).foreseen
    else:
        known = (*doubts_of(scenario), *remarks_of(scenario), *read_tables(scenario))
    typer.echo(scenario.to_toml())
    print_notes(*known)
    typer.echo(f"# {file}: valid, digest {scenario.digest()}")


def load_scenario(file: Path, assignments: list[str] | None, *, plugins: bool) -> Any:
    """Return the scenario of a file; its parts of the form ``module:Class`` may lie beside it or in this folder."""
    from fedsim.scenario import Scenario, parse_assignment

    values = each_once(map(parse_assignment, assignments or ()))
    if not plugins:
        with without_plugins():
            return Scenario.load(file, values, print_notes)
    look_in([file.resolve().parent, *_modules_of(file.parent), Path.cwd()])
    return Scenario.load(file, values, print_notes)


def _modules_of(folder: Path) -> list[str]:
    """Return the folders from which the run whose folder holds the scenario's file has imported modules, if any."""
    from fedsim.results.state import read_state

    try:
        return read_state(folder).modules
    except RunError:
        return []


class _Interrupts:
    """Let Ctrl-C, and SIGTERM that batch systems send before they kill, end a run at once or after the round.

    An exception that a signal raises can be lost: NumPy drops it while it looks for attributes of an operand, Python
    while it frees an object.
    """

    SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self._interrupt: KeyboardInterrupt | None = None

    def __enter__(self) -> Self:
        heeded = [number for number in self.SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._raise) for number in heeded}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def raise_lost(self) -> None:
        """Raise the interrupt that came, if one did: the run goes on only where it was lost."""
        if self._interrupt is not None:
            raise self._interrupt

    def _raise(self, number: int, _frame: object) -> None:
        name = () if number == signal.SIGINT else (signal.Signals(number).name,)
        self._interrupt = KeyboardInterrupt(*name)
        raise self._interrupt
