"""The data sets that models learn from, as plain arrays; a download happens on request only.

Images keep the small integers of their files; `Dataset.images` scales them to [-1, 1] (mean 0.5 and standard
deviation 0.5, as the PAUSE code does) when they are used. A set of your own is a `fedsim.Component` with a method
``load(data_dir) -> Dataset``.
"""

import functools
import hashlib
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsim.answers import Contract, InstanceOf
from fedsim.arrays import IntArray
from fedsim.errors import DataError, ScenarioError
from fedsim.inputs.files import expanded
from fedsim.learning.data.idx import check_pair
from fedsim.registry import Component, Registry
from fedsim.user_cache import user_cache

Images = NDArray[np.uint8]

# torchvision's MNIST.download builds these names itself; CIFAR-10's are those of its MD5 lists.
_IDX_FILES: Final = tuple(
    f"{part}-{what}-ubyte" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1")
)
_CIFAR_FILES: Final = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "batches.meta")


@dataclass(frozen=True)
class Dataset:
    """Labelled images, for training and for testing.

    Attributes
    ----------
    train_x : uint8 array of shape (n, height, width, channels)
    train_y : int64 array of shape (n,), labels in 0..classes-1
    test_x, test_y : likewise
    classes : number of labels
    pixel_max : the largest value a pixel can have
    """

    train_x: Images
    train_y: IntArray
    test_x: Images
    test_y: IntArray
    classes: int
    pixel_max: int

    def __post_init__(self) -> None:
        parts = ("train", self.train_x, self.train_y), ("test", self.test_x, self.test_y)
        for part, images, labels in parts:
            if images.ndim != 4 or images.dtype != np.uint8 or len(images) == 0:
                raise DataError(f"{part}_x: {images.dtype} of shape {images.shape}; uint8 (n, h, w, c) is needed")
            if labels.shape != images.shape[:1] or labels.dtype != np.int64:
                raise DataError(f"{part}_y: {labels.dtype} of shape {labels.shape}; one int64 per image is needed")
            if labels.min() < 0 or labels.max() >= self.classes:
                raise DataError(f"{part}_y: labels must lie in 0..{self.classes - 1}")
            images.flags.writeable = labels.flags.writeable = False

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        height, width, channels = self.train_x.shape[1:]
        return channels, height, width

    @functools.cached_property
    def digest(self) -> str:
        """Hash of everything in it."""
        digest = hashlib.blake2b(f"{self.classes} {self.pixel_max}".encode(), digest_size=16)
        for array in (self.train_x, self.train_y, self.test_x, self.test_y):
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


class DatasetPart(Protocol):
    """A data set as a scenario names it."""

    def load(self, data_dir: Path | None = None) -> Dataset:
        """Return the data set, or raise `DataError` if it is missing."""
        ...


DATASET_PART: Final = Contract("data set", DatasetPart, {"load": InstanceOf(Dataset)})


def data_folder(data_dir: str | Path | None = None) -> Path:
    """Return the folder of data sets: the argument, else ``FEDSIM_DATA``, else the user's cache folder."""
    named = data_dir or os.environ.get("FEDSIM_DATA")
    return expanded(named, DataError) if named else user_cache()


class _Limited(Component):
    """A data set that may be cut to its first samples.

    Attributes
    ----------
    train_limit : int >= 1, optional
        Number of training samples kept, the first ones in the order of the files (2,000 of MNIST's 60,000 in
        the PAUSE authors' ICASSP paper); the test set stays whole.
    """

    train_limit: Annotated[int, Field(ge=1)] | None = None

    def _limited(self, data: Dataset) -> Dataset:
        limit = self.train_limit
        if limit is None:
            return data
        if limit > len(data.train_y):
            raise ScenarioError(
                f"learning.data.train_limit: {limit} is not allowed; the set has {len(data.train_y)} samples"
            )
        return replace(data, train_x=data.train_x[:limit], train_y=data.train_y[:limit])


class Digits(_Limited):
    """scikit-learn's handwritten digits: 1,797 grey images of 8 x 8 pixels, 10 classes; part of scikit-learn.

    The set comes without a division. Sorted by class, and within a class in the file's order, every fifth
    sample from the first on is a test sample: 1,437 for training and 360 for testing, a fifth of every class
    to within one, the same for every seed. Training samples keep the file's order.
    """

    def available(self, data_dir: Path | None = None) -> bool:
        """Return True: the set is part of scikit-learn."""
        return True

    def download(self, data_dir: Path | None = None) -> None:
        """Do nothing: the set is part of scikit-learn."""

    def load(self, data_dir: Path | None = None) -> Dataset:
        """Return the set."""
        return self._limited(_read_digits())


class _TorchvisionSet(_Limited):
    """A data set that torchvision can read, in the layout that torchvision gives it."""

    kind: ClassVar[str]
    reader: ClassVar[str]
    folder: ClassVar[str]
    files: ClassVar[tuple[str, ...]]

    def available(self, data_dir: Path | None = None) -> bool:
        """Return whether all files of the set exist; their content is not read."""
        return not self._missing(data_folder(data_dir))

    def download(self, data_dir: Path | None = None) -> None:
        """Download the set with torchvision, unless its files exist already.

        Raises
        ------
        DataError
            If the set cannot be fetched or written.
        """
        place = data_folder(data_dir)
        try:
            place.mkdir(parents=True, exist_ok=True)
            for train in (True, False):
                _torchvision_reader(self.reader)(root=str(place), train=train, download=True)
        except (OSError, RuntimeError) as error:
            raise DataError(f"{self.kind} cannot be downloaded to {place}: {error}") from error

    def load(self, data_dir: Path | None = None) -> Dataset:
        """Return the set from its files.

        Raises
        ------
        DataError
            If files are missing or damaged; the message names the folder and the command that downloads them.
        """
        place = data_folder(data_dir)
        missing = self._missing(place)
        if missing:
            raise DataError(
                f"{self.kind} is not in {place / self.folder} ({', '.join(missing)} missing); name another folder "
                f"with --data-dir or FEDSIM_DATA, or fetch it: "
                f"fedsim data {self.kind} --download --data-dir {place}"
            )
        try:
            self._check(place)
            return self._limited(_read_torchvision(self.reader, place.resolve(), self._stamp(place)))
        except ScenarioError:
            raise
        except (
            OSError,
            RuntimeError,
            ValueError,
            AssertionError,
            TypeError,
            EOFError,
            MemoryError,
            DataError,
        ) as error:
            raise DataError(
                f"{self.kind} in {place / self.folder} is damaged ({error}); remove it and fetch it again: "
                f"fedsim data {self.kind} --download --data-dir {place}"
            ) from error

    def _check(self, place: Path) -> None:
        """Refuse files whose headers do not agree with them; sets without headers have nothing to check."""

    def _missing(self, place: Path) -> list[str]:
        return [name for name in self.files if not (place / self.folder / name).is_file()]

    def _stamp(self, place: Path) -> tuple[int, ...]:
        """Return when the files were written last, so that changed files are read again."""
        return tuple((place / self.folder / name).stat().st_mtime_ns for name in self.files)


class _IdxSet(_TorchvisionSet):
    """A data set in IDX files: images and labels for training, and for testing."""

    files = _IDX_FILES

    def _check(self, place: Path) -> None:
        for images, labels in (_IDX_FILES[:2], _IDX_FILES[2:]):
            check_pair(place / self.folder / images, place / self.folder / labels)


class MNIST(_IdxSet):
    """MNIST: 60,000 and 10,000 handwritten digits, 28 x 28 grey, 10 classes (LeCun, Cortes and Burges)."""

    kind = "mnist"
    reader = "MNIST"
    folder = "MNIST/raw"


class FashionMNIST(_IdxSet):
    """Fashion-MNIST: 60,000 and 10,000 pieces of clothing, 28 x 28 grey, 10 classes (Xiao et al. 2017)."""

    kind = "fashion-mnist"
    reader = "FashionMNIST"
    folder = "FashionMNIST/raw"


class CIFAR10(_TorchvisionSet):
    """CIFAR-10: 50,000 and 10,000 photographs, 32 x 32 in colour, 10 classes (Krizhevsky 2009).

    Its files are pickles, which can run code when they are read. torchvision's ``CIFAR10`` compares the MD5 of
    every batch with its own list before it unpickles the first, and that of ``batches.meta`` before that one,
    so a file that is not the published one is refused unread.
    """

    kind = "cifar-10"
    reader = "CIFAR10"
    folder = "cifar-10-batches-py"
    files = _CIFAR_FILES


@functools.lru_cache(maxsize=1)
def _read_digits() -> Dataset:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images, labels = bunch.images.astype(np.uint8)[..., None], bunch.target.astype(np.int64)
    test = np.zeros(labels.size, dtype=bool)
    test[np.argsort(labels, kind="stable")[::5]] = True
    return Dataset(images[~test], labels[~test], images[test], labels[test], classes=10, pixel_max=16)


@functools.lru_cache(maxsize=2)
def _read_torchvision(reader: str, place: Path, _stamp: tuple[int, ...]) -> Dataset:
    """Return a set from its files; kept, since studies load the same one for every run."""
    read = _torchvision_reader(reader)
    with warnings.catch_warnings():
        # The pickles of CIFAR-10 describe their arrays in a way that NumPy means to give up.
        warnings.filterwarnings("ignore", category=np.exceptions.VisibleDeprecationWarning)
        train, test = (read(root=str(place), train=train, download=False) for train in (True, False))
    train_x, test_x = (_four_axes(np.ascontiguousarray(part.data, dtype=np.uint8)) for part in (train, test))
    train_y, test_y = (np.asarray(part.targets, dtype=np.int64) for part in (train, test))
    return Dataset(train_x, train_y, test_x, test_y, classes=10, pixel_max=255)


def _four_axes(images: Images) -> Images:
    return images if images.ndim == 4 else images[..., None]


def _torchvision_reader(name: str) -> Callable[..., Any]:
    from torchvision import datasets

    reader: Callable[..., Any] = getattr(datasets, name)
    return reader


DATASETS: Final = Registry(
    "data set",
    "fedsim.datasets",
    ("load",),
    {
        "digits": "fedsim.learning.data.datasets:Digits",
        "mnist": "fedsim.learning.data.datasets:MNIST",
        "fashion-mnist": "fedsim.learning.data.datasets:FashionMNIST",
        "cifar-10": "fedsim.learning.data.datasets:CIFAR10",
    },
    default="digits",
)
