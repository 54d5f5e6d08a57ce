"""The command ``fedsim data``: which data sets are found and how to get them, and the division of a scenario's data."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsim.cli.options import Assignments, DataDir, figure_path, path_option
from fedsim.cli.printing import print_table
from fedsim.errors import FedsimError

if TYPE_CHECKING:
    from fedsim.learning.data.datasets import PublishedPart


def data(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A data set, or a scenario in TOML.")] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch the data set named.")] = False,
    assignments: Assignments = None,
    figure: Annotated[
        Path | None, path_option("--figure", "Draw the scenario's clients and labels.", figure_path)
    ] = None,
    table: Annotated[Path | None, path_option("--table", "Write samples by client and label as CSV.")] = None,
    data_dir: DataDir = None,
) -> None:
    """List the data sets that are found and how to get the others, download one, or tell how a scenario is divided."""
    from fedsim.learning import DATASETS, data_folder
    from fedsim.learning.data.datasets import FETCHED, PUBLISHED, PublishedPart

    if name is not None and name.endswith(".toml"):
        if download:
            raise FedsimError("data: --download needs the name of a data set, not a scenario")
        _divided(Path(name), assignments or [], figure, table, data_dir)
        return
    if assignments or figure is not None or table is not None:
        raise FedsimError("data: --set, --figure and --table need a scenario; allowed: the name of a file in .toml")
    folder = data_folder(data_dir)
    if download and name is None:
        raise FedsimError(f"data: --download needs the name of a data set; allowed: {', '.join(FETCHED)}")
    if name == "idx-files" and not download:
        _own_files(folder)
        return
    if name is not None and name not in PUBLISHED:
        raise FedsimError(
            f"data: there is no data set {name!r} of which it could tell; allowed: {', '.join(PUBLISHED)}, idx-files "
            "without --download, or a scenario in a file in .toml"
        )
    parts: dict[str, PublishedPart] = {kind: DATASETS.make(kind) for kind in (PUBLISHED if name is None else (name,))}
    if download and name is not None:
        if name not in FETCHED:
            raise FedsimError(f"data: {name} is not downloaded by fedsim; get it: {parts[name].source}")
        DATASETS.make(name).download(folder)
    _tell(parts, folder, named=name is not None, option="" if data_dir is None else f" --data-dir {data_dir}")


def _tell(parts: "Mapping[str, PublishedPart]", folder: Path, *, named: bool, option: str) -> None:
    """Tell what is found of data sets, and how to get the others; of one that is named in any case."""
    from fedsim.learning.data.datasets import FETCHED
    from fedsim.learning.data.text.in_words import found_vectors

    found = {kind: part.found(folder) for kind, part in parts.items()}
    print_table(
        f"data sets in {folder}",
        [
            (kind, "found" if found[kind] else "missing", "\n".join(found[kind]) or part.where())
            for kind, part in parts.items()
        ],
        ("data set", "", "where"),
    )
    if vectors := found_vectors(folder):
        typer.echo(f"vectors for mind and amazon-reviews: {', '.join(f'glove = {one!r}' for one in vectors)}")
    for kind, part in parts.items():
        if not found[kind] or named:
            command = f"fedsim data {kind} --download{option}, or by hand from " if kind in FETCHED else ""
            typer.echo(f"{kind}: {command}{part.source}")


def _own_files(folder: Path) -> None:
    """Tell what the kind for files of one's own is, and which folders it could read."""
    from fedsim.learning.data.images.idx import FILES
    from fedsim.learning.data.images.own_files import found_sets

    names = ", ".join(f"name = {name!r}" for name in found_sets(folder)) or "none"
    typer.echo(
        'idx-files: a set of your own, data = { kind = "idx-files", name = ... }, in four files of MNIST\'s form in '
        f"{folder / 'NAME' / 'raw'}: {', '.join(FILES)}; found: {names}"
    )


def _divided(
    file: Path, assignments: list[str], figure: Path | None, table: Path | None, data_dir: Path | None
) -> None:
    """Tell, draw and write how the data of a scenario are divided."""
    from fedsim.cli.scenarios import load_scenario
    from fedsim.history.figures.division import draw_division
    from fedsim.learning import PARTITIONS, Supervised
    from fedsim.learning.data.partitions.statistics import division_of
    from fedsim.streams import Streams

    if table is not None and table.suffix.lower() != ".csv":
        raise FedsimError(f"--table: {table} is not allowed; allowed: a name that ends in .csv")
    scenario = load_scenario(file, assignments, plugins=True)
    learning = scenario.learning
    if not isinstance(learning, Supervised):
        raise FedsimError(f"data: {file} has no data to divide; allowed: a scenario whose learning is 'supervised'")
    division = division_of(learning.data, learning.split, scenario.crowd.clients, Streams(scenario.seed), data_dir)
    kind = PARTITIONS.kind_of(learning.split)
    print_table(f"{scenario.name}: {kind}", list(division.facts().items()))
    if table is not None:
        _write(table, division.counts.tolist())
    if figure is not None:
        draw_division(division.counts, f"{scenario.name}: {kind}", figure)
    for written in (table, figure):
        if written is not None:
            typer.echo(str(written))


def _write(path: Path, counts: list[list[int]]) -> None:
    from fedsim.whole_files import make_folder, replace_file

    lines = [f"{client},{label},{count}" for client, row in enumerate(counts) for label, count in enumerate(row)]
    text = "\n".join(["client,label,samples", *lines]) + "\n"
    make_folder(path.parent)
    replace_file(path, lambda part: part.write_text(text, encoding="utf-8"))
