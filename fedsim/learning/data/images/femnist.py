"""FEMNIST as LEAF writes it: handwritten digits and letters by writer."""

import itertools
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Final

import numpy as np
from pydantic import Field

from fedsim.arrays import IntArray
from fedsim.errors import DataError, ScenarioError
from fedsim.inputs.files import read_text
from fedsim.learning.data.datasets import Dataset, Images
from fedsim.learning.data.in_files import MAX_BYTES, InFiles, form_of, owners

_CLASSES: Final = 62
_Writer = tuple[Path, str]
_Samples = tuple[Images, IntArray]

_SIDE: Final = 28
_FORM: Final = (
    "a file of LEAF's, with users, num_samples of each, and user_data with x of 784 numbers from 0 to 1 and y, whole "
    "numbers from 0 to 61"
)


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
        writers = _samples_of(train, self.users)
        if self.users is not None and len(writers) < self.users:
            raise ScenarioError(
                f"learning.data.users: {self.users} is not allowed; {train[0].parent} has {len(writers)} writers with "
                f"samples; allowed: 1 to {len(writers)}"
            )
        tests = _samples_of(test, None, None if self.users is None else {name for _, name in writers})
        users = owners([labels for _, labels in writers.values()])
        x, y = map(np.concatenate, zip(*writers.values(), strict=True))
        test_x, test_y = map(np.concatenate, zip(*tests.values(), strict=True))
        return Dataset(x, y, test_x, test_y, classes=_CLASSES, pixel_max=255, train_users=users)


def _samples_of(
    paths: Sequence[Path], most: int | None, only: Collection[str] | None = None
) -> dict[_Writer, _Samples]:
    """Return images and labels of each writer, of at most some of them, or of those with some names."""
    found = dict(itertools.islice((one for path in paths for one in _writers(path, only)), most))
    if not found:
        whose = "has samples" if only is None else f"of the first {len(only)} for training has samples here"
        raise DataError(
            f"{paths[0].parent}: no writer {whose}; allowed: files of LEAF's with samples, and with users = ... those "
            "of -t sample"
        )
    return found


def _writers(path: Path, only: Collection[str] | None) -> Iterator[tuple[_Writer, _Samples]]:
    """Yield images and labels of each writer with samples in one of LEAF's files; of some alone if named."""
    with form_of(path, _FORM):
        content = json.loads(read_text(path, DataError, max_bytes=MAX_BYTES))
        names, of = content["users"], content["user_data"]
        counts = content.get("num_samples", [len(of[name]["y"]) for name in names])
        for name, count in zip(names, counts, strict=True):
            if only is not None and name not in only:
                continue
            x, y = (np.asarray(of[name][key], dtype=np.float64) for key in "xy")
            wrong = y[(y != np.rint(y)) | (y < 0) | (y >= _CLASSES)]
            if wrong.size:
                raise ValueError(f"a label of {name!r} is {wrong[0]}")
            if len(x) != count or y.shape != (count,) or x.shape[1:] not in ((), (_SIDE**2,)):
                raise ValueError(f"{name!r} has images of shape {x.shape}, {len(y)} labels, num_samples {count}")
            if count and not 0 <= x.min() <= x.max() <= 1:
                raise ValueError(f"{name!r} has numbers from {x.min()} to {x.max()}")
            if count:
                pixels = np.rint(255 * x).astype(np.uint8).reshape(-1, _SIDE, _SIDE, 1)
                yield (path, str(name)), (pixels, y.astype(np.int64))
