"""FEMNIST as LEAF writes it: handwritten digits and letters by writer."""

from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fedsim.errors import ScenarioError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.images.leaf import CLASSES, samples_of
from fedsim.learning.data.in_files import InFiles, owners


class FEMNIST(InFiles):
    """FEMNIST: handwritten digits and letters by writer, 28 x 28 grey, 62 classes (Caldas et al. 2018, LEAF).

    LEAF's numbers between 0 and 1 are pixels over 255, to which they are rounded. Every writer is a user. The division
    into training and test is LEAF's: by samples (``-t sample``), where a writer has samples for both, or by
    users (``-t user``), where writers for testing are others.

    Attributes
    ----------
    users : int >= 1, optional
        How many writers are read, the first ones in the order of the files; test samples are theirs alone. All by
        default.
    """

    source: ClassVar[str] = (
        "github.com/TalwalkarLab/leaf, in data/femnist: ./preprocess.sh -s niid --sf 1.0 -k 0 -t sample (for a part "
        "--sf 0.05; it writes data/train and data/test only with -t); put these two folders into femnist/train and "
        "femnist/test"
    )
    place: ClassVar[str] = "femnist"
    paths: ClassVar[tuple[str, ...]] = ("{where}/train/*.json", "{where}/test/*.json")

    users: Annotated[int, Field(ge=1)] | None = None

    def read(self, place: Path) -> Dataset:
        files = self.files(place)
        train, test = ([path for path in files if path.parent.name == part] for part in ("train", "test"))
        writers = samples_of(train, self.users)
        if self.users is not None and len(writers) < self.users:
            raise ScenarioError(
                f"learning.data.users: {self.users} is not allowed; {train[0].parent} has {len(writers)} writers with "
                f"samples; allowed: 1 to {len(writers)}"
            )
        tests = samples_of(test, None, None if self.users is None else {name for _, name in writers})
        users = owners([labels for _, labels in writers.values()])
        x, y = map(np.concatenate, zip(*writers.values(), strict=True))
        test_x, test_y = map(np.concatenate, zip(*tests.values(), strict=True))
        return Dataset(x, y, test_x, test_y, classes=CLASSES, pixel_max=255, train_users=users)
