"""Values that several commands take."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from fedsim.errors import FedsimError
from fedsim.inputs.files import check_path


def one_path(value: Path | None) -> Path | None:
    """Refuse a path that no file system takes."""
    return None if value is None else check_path(value, FedsimError)


def figure_path(value: Path | None) -> Path | None:
    """Refuse the file of a figure that could not be written, before the runs that it shows."""
    if value is None:
        return None
    from fedsim.history.figures.writing import figure_file

    return figure_file(value)


def path_option(name: str, said: str, check: Callable[[Path | None], Path | None] = one_path, **more: Any) -> Any:
    """Return an option that is a path."""
    return typer.Option(name, callback=check, help=said, **more)


def each_path(values: list[Path]) -> list[Path]:
    return [check_path(value, FedsimError) for value in values]


def each_once(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return values by their names; refuse a name that comes twice."""
    found: dict[str, Any] = {}
    for name, value in values:
        if name in found:
            raise FedsimError(f"{name}: is named twice, {found[name]!r} and {value!r}; allowed: once")
        found[name] = value
    return found


DataDir = Annotated[Path | None, path_option("--data-dir", "Where real data sets lie (default: $FEDSIM_DATA).")]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="A.B=VALUE", help="Replace one value of the scenario; may be repeated."),
]
