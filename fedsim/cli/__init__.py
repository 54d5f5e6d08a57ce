"""The command line: run, sweep, compare, whatif, best, steady, plot, report, check, list, data, calibrate and store."""

import sys
import warnings
from typing import Annotated, Any

import typer

from fedsim.cli.boundary import guarded, show_tracebacks
from fedsim.cli.calibration import calibrate
from fedsim.cli.data_sets import data
from fedsim.cli.finished_runs import plot, report
from fedsim.cli.kinds import list_kinds
from fedsim.cli.scenarios import check, run
from fedsim.cli.store import store_app
from fedsim.cli.studies import compare, sweep
from fedsim.cli.what_ifs import best, steady, whatif
from fedsim.errors import StoreWarning

app = typer.Typer(name="fedsim", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
for command in (run, sweep, compare, whatif, best, steady, plot, report, check):
    app.command()(command)
app.command("list")(list_kinds)
app.command()(data)
app.command()(calibrate)
app.add_typer(store_app, name="store")


def main() -> None:
    warnings.showwarning = _show_warning
    sys.exit(guarded(app))


def _print_version(asked: bool) -> None:
    """Print what a report of a fault needs, and end."""
    if asked:
        from fedsim.cli.version import version_lines

        for line in version_lines():
            typer.echo(line)
        raise typer.Exit


@app.callback()
def options(
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Print where an error came from (also: FEDSIM_TRACEBACK=1).")
    ] = False,
    version: Annotated[  # noqa: ARG001 - its callback has read it
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print versions, code and machine, for a report."
        ),
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
