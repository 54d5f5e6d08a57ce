"""A data set of the user's own, in files of MNIST's form."""

from pathlib import Path
from typing import Annotated, ClassVar, Final

from pydantic import Field

from fedsim.errors import DataError
from fedsim.inputs.tables import Table
from fedsim.learning.data.datasets import Dataset, data_folder
from fedsim.learning.data.images.idx import FILES, read_set
from fedsim.learning.data.in_files import NAME, FolderName, InFiles

_USERS: Final = "train-users.csv"


class IdxFiles(InFiles):
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
    """

    source: ClassVar[str] = "write the files of your set in MNIST's form"
    place: ClassVar[str] = "{name}/raw"
    paths: ClassVar[tuple[str, ...]] = tuple(f"{{where}}/{name}" for name in FILES)
    users_path: ClassVar[str] = f"{{where}}/{_USERS}"

    name: FolderName
    classes: Annotated[int, Field(ge=2, le=256)] = 10
    users: bool = False
    digest: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None = None

    @property
    def with_users(self) -> bool:
        return self.users

    def read(self, place: Path) -> Dataset:
        folder = place / self.where()
        x, y, test_x, test_y = read_set([folder / name for name in FILES], self.content, self.classes)
        users = None
        if self.users:
            table = Table.read(folder / _USERS, "learning.data")
            users = table.whole("user")
            if users.size != y.size:
                table.refuse(f"it has {users.size} rows; there must be one for each of the {y.size} training samples")
        try:
            data = Dataset(x, y, test_x, test_y, classes=self.classes, pixel_max=255, train_users=users)
        except DataError as error:
            raise DataError(f"{folder} ({', '.join(FILES)}): {error}") from None
        if self.digest not in (None, data.digest):
            raise DataError(f"{folder}: its content has the digest {data.digest}; allowed: {self.digest}")
        return data


def found_sets(data_dir: Path | None = None) -> tuple[str, ...]:
    names = sorted(path.parent.parent.name for path in data_folder(data_dir).glob(f"*/raw/{FILES[0]}"))
    return tuple(name for name in names if NAME.fullmatch(name) and IdxFiles(name=name).available(data_dir))
