"""FEMNIST as LEAF writes it: JSON files with the samples of each writer."""

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsim.arrays import IntArray
from fedsim.errors import DataError, ScenarioError
from fedsim.inputs.files import read_text
from fedsim.learning.data.datasets import Dataset, Images
from fedsim.learning.data.in_files import InFiles

MAX_BYTES: Final = 1 << 31
"""Size of the largest of LEAF's files, which have the samples of 100 users each."""

_SIDE: Final = 28
_CLASSES: Final = 62


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

    kind: ClassVar[str] = "femnist"
    source: ClassVar[str] = (
        "github.com/TalwalkarLab/leaf, in data/femnist: ./preprocess.sh -s niid --sf 1.0 -k 0 -t sample (for a part "
        "--sf 0.05; it writes data/train and data/test only with -t); put these two folders into femnist/train and "
        "femnist/test"
    )

    users: Annotated[int, Field(ge=1)] | None = None

    def where(self) -> str:
        return "femnist"

    def wanted(self) -> tuple[tuple[str, ...], ...]:
        return ("femnist/train/*.json",), ("femnist/test/*.json",)

    def read(self, place: Path) -> Dataset:
        files = self.files(place)
        train, test = ([path for path in files if path.parent.name == part] for part in ("train", "test"))
        train_x, train_y, user, names = _part(train, self.users)
        if self.users is not None and len(names) < self.users:
            raise ScenarioError(
                f"learning.data.users: {self.users} is not allowed; {train[0].parent} has {len(names)} writers with "
                f"samples; allowed: 1 to {len(names)}"
            )
        test_x, test_y, _, _ = _part(test, None, None if self.users is None else frozenset(names))
        return Dataset(train_x, train_y, test_x, test_y, classes=_CLASSES, pixel_max=255, train_users=user)


def _part(
    paths: Sequence[Path], most: int | None, only: Collection[str] | None = None
) -> tuple[Images, IntArray, IntArray, list[str]]:
    """Return images, labels, the number of each sample's writer, and the writers' names."""
    images, labels, user, names = [], [], [], list[str]()
    for path in paths:
        for name, x, y in _users(path, only):
            images.append(x)
            labels.append(y)
            user.append(np.full(y.size, len(names), dtype=np.int64))
            names.append(name)
            if len(names) == most:
                return np.concatenate(images), np.concatenate(labels), np.concatenate(user), names
    if not names:
        whose = "has samples" if only is None else f"of the first {len(only)} for training has samples here"
        raise DataError(
            f"{paths[0].parent}: no writer {whose}; allowed: files of LEAF's with samples, and with users = ... those "
            "of -t sample"
        )
    return np.concatenate(images), np.concatenate(labels), np.concatenate(user), names


def _users(path: Path, only: Collection[str] | None) -> Iterator[tuple[str, Images, IntArray]]:
    """Yield name, images and labels of each writer in one of LEAF's files; of some alone if named."""
    try:
        content = json.loads(read_text(path, DataError, max_bytes=MAX_BYTES))
        names = content["users"]
        counts = content.get("num_samples", [len(content["user_data"][name]["y"]) for name in names])
        for name, count in zip(names, counts, strict=True):
            if only is not None and name not in only:
                continue
            samples = content["user_data"][name]
            if not len(samples["x"]) == len(samples["y"]) == count:
                raise ValueError(
                    f"{len(samples['x'])} images, {len(samples['y'])} labels, num_samples {count}: {name!r}"
                )
            pixels = np.rint(255 * _numbers(samples["x"], _SIDE**2)).astype(np.uint8)
            labels = _numbers([[label] for label in samples["y"]], 1)[:, 0]
            if np.any(labels != np.rint(labels)) or labels.max(initial=0) >= _CLASSES:
                raise ValueError(
                    f"a label of {name!r} is {labels[(labels != np.rint(labels)) | (labels >= _CLASSES)][0]}"
                )
            if labels.size:
                yield str(name), pixels.reshape(-1, _SIDE, _SIDE, 1), labels.astype(np.int64)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, MemoryError) as error:
        raise DataError(
            f"{path}: cannot be read as a file of LEAF's: {type(error).__name__}: {error}; allowed: users, num_samples "
            f"of each, and user_data with x of {_SIDE**2} numbers from 0 to 1 and y, whole numbers from 0 to "
            f"{_CLASSES - 1}"
        ) from None


def _numbers(rows: Any, width: int) -> NDArray[np.float64]:
    """Return rows of numbers of at least 0 as an array of shape (n, width); images are at most 1."""
    found = np.asarray(rows, dtype=np.float64).reshape(len(rows), -1)
    if found.size and (found.shape[1] != width or not 0 <= found.min() <= found.max() <= (1 if width > 1 else 1e9)):
        raise ValueError(f"{found.shape[1]} numbers from {found.min()} to {found.max()}")
    return found.reshape(-1, width)
