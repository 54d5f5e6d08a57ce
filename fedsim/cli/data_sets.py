"""The command ``fedsim data``: the data sets that are found, and their download."""

from typing import Annotated

import typer

from fedsim.cli.options import DataDir
from fedsim.cli.printing import print_table
from fedsim.errors import FedsimError


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
    print_table(
        f"data sets in {folder}",
        [(kind, "found" if DATASETS.make(kind).available(folder) else "missing") for kind in kinds],
    )
