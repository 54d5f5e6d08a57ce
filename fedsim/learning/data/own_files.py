"""A data set of the user's own, in files of MNIST's form."""

import functools
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from fedsim.arrays import IntArray
from fedsim.capabilities import USERS
from fedsim.errors import DataError
from fedsim.inputs.tables import Table
from fedsim.learning.data.datasets import Dataset, Limited, data_folder
from fedsim.learning.data.idx import FILES, read_pair
from fedsim.registry import refusal

_USERS: Final = "train-users.csv"
_NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,99}")


def _one_name(value: str) -> str:
    if _NAME.fullmatch(value) is None:
        raise refusal("folder", "it must be the name of a folder: letters, digits, '-', '_' and '.'")
    return value


def _one_file(value: str) -> str:
    if _NAME.fullmatch(value) is None:
        raise refusal("file", "it must be the name of a file without its ending: letters, digits, '-', '_' and '.'")
    return value


FolderName = Annotated[str, AfterValidator(_one_name)]
"""A name in the data folder, without a path."""
FileName = Annotated[str, AfterValidator(_one_file)]
"""The same for a file, without its ending."""


class IdxFiles(Limited):
    """A set of your own, in four IDX files named as MNIST's in the folder ``NAME/raw`` of the data folder.

    No list has its checksum, so that it has to be named. The digest of its content stands in ``run.json`` of each run.

    Attributes
    ----------
    name : str
        Folder in the data folder.
    classes : int, 2 to 256
        Number of labels, which are 0 to classes - 1.
    users : bool
        Whether a fifth file of the folder, ``train-users.csv``, gives the user of each training sample, such as its
        writer: a table with a column ``user`` of whole numbers from 0 and one row for each sample, in their order.
    digest : str, optional
        32 hexadecimal digits that the digest of the content must be; it is then part of the experiment.

    Examples
    --------
    >>> letters = IdxFiles(name="letters", classes=26)
    >>> letters.available("no-such-folder"), letters.provides
    (False, frozenset())
    >>> letters.load("no-such-folder")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    fedsim.errors.DataError: letters is not in no-such-folder/letters/raw (train-images-idx3-ubyte, ...
    """

    name: FolderName
    classes: Annotated[int, Field(ge=2, le=256)] = 10
    users: bool = False
    digest: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None = None

    @property
    def provides(self) -> frozenset[str]:
        return frozenset({USERS} if self.users else ())

    def available(self, data_dir: Path | None = None) -> bool:
        return not self._missing(data_folder(data_dir))

    def load(self, data_dir: Path | None = None) -> Dataset:
        folder = data_folder(data_dir) / self.name / "raw"
        if missing := self._missing(data_folder(data_dir)):
            raise DataError(f"{self.name} is not in {folder} ({', '.join(missing)} missing)")
        stamp = tuple((folder / name).stat().st_mtime_ns for name in FILES)
        data = _read(folder.resolve(), self.classes, stamp)
        if self.users:
            data = replace(data, train_users=_users(folder / _USERS, data.train_y.size))
        if self.digest not in (None, data.digest):
            raise DataError(f"{folder}: its content has the digest {data.digest}; allowed: {self.digest}")
        return self.limited(data)

    def _missing(self, place: Path) -> list[str]:
        names = (*FILES, _USERS) if self.users else FILES
        return [name for name in names if not (place / self.name / "raw" / name).is_file()]


def found_sets(data_dir: Path | None = None) -> tuple[str, ...]:
    """Return the folders of a data folder that have the four files, by name."""
    names = sorted(path.parent.parent.name for path in data_folder(data_dir).glob(f"*/raw/{FILES[0]}"))
    return tuple(name for name in names if _NAME.fullmatch(name) and IdxFiles(name=name).available(data_dir))


def _users(path: Path, samples: int) -> IntArray:
    table = Table.read(path, "learning.data")
    users = table.whole("user")
    if users.size != samples:
        table.refuse(f"it has {users.size} rows; there must be one for each of the {samples} training samples")
    return users


@functools.lru_cache(maxsize=2)
def _read(folder: Path, classes: int, _stamp: tuple[int, ...]) -> Dataset:
    train, test = (read_pair(folder / images, folder / labels) for images, labels in (FILES[:2], FILES[2:]))
    try:
        return Dataset(*train, *test, classes=classes, pixel_max=255)
    except DataError as error:
        raise DataError(f"{folder} ({', '.join(FILES)}): {error}") from None
