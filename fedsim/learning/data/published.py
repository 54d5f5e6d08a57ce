"""Published data sets, whose files must have the published checksums; a download happens on request only.

The files lie where torchvision puts them. Pickles of torchvision's own (``processed/*.pt``) are never read.
"""

import functools
import gzip
import tempfile
import warnings
import zlib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from fedsim.errors import DataError, ScenarioError
from fedsim.inputs.files import check_file, read_bytes
from fedsim.learning.data.datasets import Dataset, Limited, data_folder
from fedsim.learning.data.idx import FILES, MAX_BYTES, check_pair, md5, read_pair

_CIFAR_FILES: Final = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "batches.meta")
_IDX_HINT: Final = f"{', '.join(f'{name}.gz' for name in FILES)}, in"
"""Names of the files of MNIST and Fashion-MNIST; a download unpacks packed ones."""


class _Published(Limited):
    """A published data set, in the layout that torchvision gives it."""

    kind: ClassVar[str]
    reader: ClassVar[str]
    folder: ClassVar[str]
    source: ClassVar[str]
    files: ClassVar[tuple[str, ...]]

    def where(self) -> str:
        return self.folder

    def found(self, data_dir: Path | None = None) -> tuple[str, ...]:
        return (self.folder,) if self.available(data_dir) else ()

    def available(self, data_dir: Path | None = None) -> bool:
        return not self._missing(data_folder(data_dir))

    def download(self, data_dir: Path | None = None) -> None:
        place = data_folder(data_dir)
        try:
            place.mkdir(parents=True, exist_ok=True)
            self._fetch(place)
        except (OSError, RuntimeError) as error:
            raise DataError(f"{self.kind} cannot be downloaded to {place}: {error}") from error

    def load(self, data_dir: Path | None = None) -> Dataset:
        place = data_folder(data_dir)
        missing = self._missing(place)
        if missing:
            raise DataError(
                f"{self.kind} is not in {place / self.folder} ({', '.join(missing)} missing); name another folder with "
                f"--data-dir or FEDSIM_DATA, or fetch it: fedsim data {self.kind} --download --data-dir {place}"
            )
        try:
            return self.limited(self._read(place.resolve(), self._stamp(place)))
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

    @abstractmethod
    def _fetch(self, place: Path) -> None:
        """Download the files that are missing to a data folder."""

    @abstractmethod
    def _read(self, place: Path, stamp: tuple[int, ...]) -> Dataset:
        """Return the set in a data folder, read again when the stamp is another one."""

    def _missing(self, place: Path) -> list[str]:
        return [name for name in self.files if not _there(place / self.folder / name).is_file()]

    def _stamp(self, place: Path) -> tuple[int, ...]:
        """Return when the files were written last, so that changed files are read again."""
        return tuple(_there(place / self.folder / name).stat().st_mtime_ns for name in self.files)


class _IdxSet(_Published):
    """A published set in IDX files.

    `published` has the MD5 of each file. It is that of the content of the archive of this name whose MD5 is published,
    and stands in torchvision as ``resources`` of the class `reader`.
    """

    files = FILES
    published: ClassVar[Mapping[str, str]]

    def _fetch(self, place: Path) -> None:
        from torchvision.datasets.utils import download_and_extract_archive

        reader = _torchvision(self.reader)
        for archive, checksum in reader.resources:
            if not (place / self.folder / archive.removesuffix(".gz")).is_file():
                _from_mirrors(download_and_extract_archive, reader.mirrors, str(place / self.folder), archive, checksum)

    def _read(self, place: Path, stamp: tuple[int, ...]) -> Dataset:
        return _read_idx(place / self.folder, tuple(self.published.items()), stamp)


class MNIST(_IdxSet):
    """MNIST: 60,000 and 10,000 handwritten digits, 28 x 28 grey, 10 classes (LeCun, Cortes and Burges).

    Examples
    --------
    >>> MNIST(train_limit=2000).where()
    'MNIST/raw'
    >>> MNIST().load("no-such-folder")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    fedsim.errors.DataError: mnist is not in no-such-folder/MNIST/raw (train-images-idx3-ubyte, ...
    """

    kind = "mnist"
    source = f"yann.lecun.com/exdb/mnist, {_IDX_HINT} MNIST/raw"
    reader = "MNIST"
    folder = "MNIST/raw"
    published: ClassVar[Mapping[str, str]] = {
        "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
        "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
        "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
        "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    }


class FashionMNIST(_IdxSet):
    """Fashion-MNIST: 60,000 and 10,000 pieces of clothing, 28 x 28 grey, 10 classes (Xiao et al. 2017).

    Examples
    --------
    >>> FashionMNIST().available("no-such-folder"), FashionMNIST().where()
    (False, 'FashionMNIST/raw')
    """

    kind = "fashion-mnist"
    source = f"github.com/zalandoresearch/fashion-mnist, data/fashion: {_IDX_HINT} FashionMNIST/raw"
    reader = "FashionMNIST"
    folder = "FashionMNIST/raw"
    published: ClassVar[Mapping[str, str]] = {
        "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
        "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
        "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
    }


class _Pickled(_Published):
    """A published set in pickles, which can run code when they are read.

    torchvision's class compares the MD5 of every batch with its own list before it unpickles the first, and that of the
    names of labels before that one, so a file that is not the published one is refused unread.
    """

    classes: ClassVar[int]

    def _fetch(self, place: Path) -> None:
        for train in (True, False):
            _torchvision(self.reader)(root=str(place), train=train, download=True)

    def _read(self, place: Path, stamp: tuple[int, ...]) -> Dataset:
        return _read_torchvision(self.reader, self.classes, place, stamp)


class CIFAR10(_Pickled):
    """CIFAR-10: 50,000 and 10,000 photographs, 32 x 32 in colour, 10 classes (Krizhevsky 2009).

    Examples
    --------
    >>> CIFAR10().available("no-such-folder"), CIFAR10().where(), CIFAR10.classes
    (False, 'cifar-10-batches-py', 10)
    """

    kind = "cifar-10"
    source = "www.cs.toronto.edu/~kriz/cifar.html, cifar-10-python.tar.gz, unpacked: a folder cifar-10-batches-py"
    reader = "CIFAR10"
    folder = "cifar-10-batches-py"
    files = _CIFAR_FILES
    classes = 10


class CIFAR100(_Pickled):
    """CIFAR-100: 50,000 and 10,000 photographs, 32 x 32 in colour, 100 classes (Krizhevsky 2009).

    Examples
    --------
    >>> CIFAR100().available("no-such-folder"), CIFAR100().where(), CIFAR100.classes
    (False, 'cifar-100-python', 100)
    """

    kind = "cifar-100"
    source = "www.cs.toronto.edu/~kriz/cifar.html, cifar-100-python.tar.gz, unpacked: a folder cifar-100-python"
    reader = "CIFAR100"
    folder = "cifar-100-python"
    files = ("train", "test", "meta")
    classes = 100


@functools.lru_cache(maxsize=2)
def _read_idx(folder: Path, published: tuple[tuple[str, str], ...], _stamp: tuple[int, ...]) -> Dataset:
    """Return a set from its files, plain or packed; cached, since studies load the same one for every run."""
    if any(_there(folder / name).suffix == ".gz" for name in FILES):
        with tempfile.TemporaryDirectory() as unpacked:
            for name in FILES:
                (Path(unpacked) / name).write_bytes(_content(_there(folder / name)))
            return _read_plain(Path(unpacked), published)
    return _read_plain(folder, published)


def _there(path: Path) -> Path:
    """Return a file, or where it is missing the same packed by gzip."""
    return path if path.is_file() else path.with_name(f"{path.name}.gz")


def _content(path: Path) -> bytes:
    """Return the bytes of a file, plain or packed by gzip."""
    if path.suffix != ".gz":
        return read_bytes(path, MAX_BYTES, DataError)
    try:
        with gzip.open(check_file(path, MAX_BYTES, DataError)) as packed:
            found = packed.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path.name}: cannot be unpacked: {error}") from None
    if len(found) > MAX_BYTES:
        raise DataError(f"{path.name}: has more than {MAX_BYTES} bytes unpacked; allowed: at most as many")
    return found


def _read_plain(folder: Path, published: tuple[tuple[str, str], ...]) -> Dataset:
    for images, labels in (FILES[:2], FILES[2:]):
        check_pair(folder / images, folder / labels)
    for name, checksum in published:
        if (found := md5(folder / name)) != checksum:
            raise DataError(
                f"{name} has the MD5 {found}, and the published one is {checksum}; a set of your own is read with "
                f'data = {{ kind = "idx-files", name = ... }}'
            )
    train, test = (read_pair(folder / images, folder / labels) for images, labels in (FILES[:2], FILES[2:]))
    return Dataset(*train, *test, classes=10, pixel_max=255)


@functools.lru_cache(maxsize=2)
def _read_torchvision(reader: str, classes: int, place: Path, _stamp: tuple[int, ...]) -> Dataset:
    read = _torchvision(reader)
    with warnings.catch_warnings():
        # The pickles of CIFAR-10 describe their arrays in a way that NumPy means to give up.
        warnings.filterwarnings("ignore", category=np.exceptions.VisibleDeprecationWarning)
        train, test = (read(root=str(place), train=train, download=False) for train in (True, False))
    train_x, test_x = (np.ascontiguousarray(part.data, dtype=np.uint8) for part in (train, test))
    train_y, test_y = (np.asarray(part.targets, dtype=np.int64) for part in (train, test))
    return Dataset(train_x, train_y, test_x, test_y, classes=classes, pixel_max=255)


def _from_mirrors(fetch: Callable[..., None], mirrors: list[str], folder: str, archive: str, checksum: str) -> None:
    """Fetch and unpack an archive from the first mirror that has it with its checksum."""
    problems = []
    for mirror in mirrors:
        try:
            return fetch(f"{mirror}{archive}", download_root=folder, filename=archive, md5=checksum)
        except (OSError, RuntimeError) as error:
            problems.append(f"{mirror}: {error}")
    raise RuntimeError("; ".join(problems))


def _torchvision(name: str) -> Any:
    from torchvision import datasets

    return getattr(datasets, name)
