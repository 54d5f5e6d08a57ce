"""The command ``fedsim store``: what the store holds; trim, check and clear it."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsim.errors import StoreError

if TYPE_CHECKING:
    from fedsim.learning.store.disk import DiskStore

store_app = typer.Typer(
    help="Show the store of results, trim, check or clear it.", invoke_without_command=True, add_completion=False
)

Folder = Annotated[
    Path | None,
    typer.Option("--store", metavar="DIR", help="The store (default: $FEDSIM_STORE, the user's cache folder)."),
]


@store_app.callback()
def show(context: typer.Context, folder: Folder = None) -> None:
    """Show what the store holds: records of trainings and evaluations, and models."""
    from fedsim.learning.store.choice import show_size

    if context.invoked_subcommand is not None:
        context.obj = folder
        return
    store = _opened(folder)
    held = store.usage()
    lines = {
        "folder": str(store.folder),
        "records": f"{held.records}, {show_size(held.record_bytes)}",
        "models": f"{held.arrays}, {show_size(held.array_bytes)} of at most {show_size(store.limit_bytes)}",
        "oldest use": _ago(held.oldest_s),
        "newest use": _ago(held.newest_s),
    }
    for name, value in lines.items():
        typer.echo(f"{name:<12}{value}")


@store_app.command()
def trim(
    context: typer.Context,
    folder: Folder = None,
    size: Annotated[
        str | None, typer.Option("--to", metavar="SIZE", help="Room that models may take, such as '2 GiB'.")
    ] = None,
    days: Annotated[float | None, typer.Option("--older-than", metavar="DAYS", min=0, help="Days without use.")] = None,
) -> None:
    """Remove the models used longest ago. Records stay."""
    from fedsim.learning.store.choice import parse_size, show_size

    if size is None and days is None:
        raise StoreError("store trim: --to SIZE or --older-than DAYS is missing")
    limit_bytes = None if size is None else parse_size(size, "--to")
    store = _opened(folder, context)
    arrays, array_bytes = store.trim(limit_bytes, days)
    typer.echo(f"{arrays} models removed, {show_size(array_bytes)}")


@store_app.command()
def check(context: typer.Context, folder: Folder = None) -> None:
    """Verify every checksum, and remove what is damaged."""
    found = _opened(folder, context).check()
    typer.echo(f"{found.records} records and {found.arrays} models are sound")
    if found.damaged_records or found.damaged_arrays:
        typer.echo(f"{found.damaged_records} records and {found.damaged_arrays} models were damaged and are removed")
        raise typer.Exit(1)


@store_app.command()
def clear(
    context: typer.Context,
    folder: Folder = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove all records and models."""
    store = _opened(folder, context)
    if not yes:
        typer.confirm(f"Remove all results in {store.folder}?", abort=True)
    store.clear()
    typer.echo(f"{store.folder} is empty")


def _opened(folder: Path | None, context: typer.Context | None = None) -> "DiskStore":
    from fedsim.learning.store.choice import STORE_VARIABLE, default_folder, open_folder
    from fedsim.learning.store.disk import FILE

    if folder is None and context is not None:
        folder = context.obj
    folder = default_folder() if folder is None else folder
    if folder is None:
        raise StoreError(f"store: {STORE_VARIABLE} names none; name a folder with --store DIR")
    if not (folder / FILE).exists():
        raise StoreError(f"store: there is none in {folder}; a run makes one when it keeps results")
    return open_folder(folder)


def _ago(used_s: float | None) -> str:
    if used_s is None:
        return "never"
    hours = max(0.0, time.time() - used_s) / 3600
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(used_s))
    return f"{when}, {hours:.1f} hours ago" if hours < 48 else f"{when}, {hours / 24:.0f} days ago"
