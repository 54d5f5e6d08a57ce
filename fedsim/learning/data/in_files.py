"""A data set in public files of the data folder: fetched on request, found, compared with published checksums, read."""

import functools
import gzip
import hashlib
import zlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, IntArray
from fedsim.capabilities import USERS
from fedsim.errors import DataError
from fedsim.inputs.files import check_file, read_bytes
from fedsim.learning.data.datasets import Dataset, Limited, data_folder

MAX_BYTES: Final = 1 << 31
"""Size of the largest file that is read as a whole."""


class InFiles(Limited):
    """A data set in files of a form that its publishers chose.

    Attributes
    ----------
    kind : name of the kind
    source : where the files are published, and how they are laid out in the data folder
    published : MD5 of each file, unpacked; one that has another is refused
    archives : MD5 of each published archive; a set without any is not fetched by fedsim
    mirrors : addresses of folders with the archives, asked in this order
    tells_users : whether the files say to whom each sample belongs
    """

    kind: ClassVar[str]
    source: ClassVar[str]
    published: ClassVar[Mapping[str, str]] = {}
    archives: ClassVar[Mapping[str, str]] = {}
    mirrors: ClassVar[tuple[str, ...]] = ()
    tells_users: ClassVar[bool] = True

    @property
    def provides(self) -> frozenset[str]:
        return frozenset({USERS} if self.tells_users else ())

    @abstractmethod
    def where(self) -> str:
        """Return the file or folder in the data folder, as a user would look for it."""

    @abstractmethod
    def wanted(self) -> tuple[tuple[str, ...], ...]:
        """Return patterns of the needed paths in the data folder; the first of each tuple that a file has counts."""

    @abstractmethod
    def read(self, place: Path) -> Dataset:
        """Return the whole set in a data folder, or raise `DataError` that names a damaged file."""

    def files(self, place: Path) -> tuple[Path, ...]:
        """Return the files that stand for the set in a data folder; none if one is missing."""
        found = [_first(place, ways) for ways in self.wanted()]
        return tuple(path for paths in found for path in paths) if all(found) else ()

    def missing(self, place: Path) -> list[str]:
        return [" or ".join(ways) for ways in self.wanted() if not _first(place, ways)]

    def found(self, data_dir: Path | None = None) -> tuple[str, ...]:
        """Return which parts of the set are in a data folder, whatever the options; no content is read."""
        return (self.where(),) if self.available(data_dir) else ()

    def available(self, data_dir: Path | None = None) -> bool:
        return bool(self.files(data_folder(data_dir)))

    def load(self, data_dir: Path | None = None) -> Dataset:
        place = data_folder(data_dir)
        files = self.files(place)
        fetch = f"fedsim data {self.kind} --download --data-dir {place}"
        if not files:
            raise DataError(
                f"{self.kind} is not in {place / self.where()} (missing: {', '.join(self.missing(place))}); name "
                "another folder with --data-dir or FEDSIM_DATA, or "
                + (f"fetch it: {fetch}" if self.archives else f"get it: {self.source}")
            )
        stamp = tuple((path.stat().st_mtime_ns, path.stat().st_size) for path in files)
        try:
            whole = _read(self.model_copy(update={"train_limit": None}), place.resolve(), stamp)
        except DataError as error:
            if not self.archives:
                raise
            raise DataError(
                f"{self.kind} in {place / self.where()} is damaged ({error}); remove it and fetch it again: {fetch}"
            ) from None
        return self.limited(whole)

    def download(self, data_dir: Path | None = None) -> None:
        place = data_folder(data_dir)
        if not self.available(place):
            for archive, md5 in self.archives.items():
                self._fetch(place, archive, md5)

    def _fetch(self, place: Path, archive: str, md5: str) -> None:
        """Fetch and unpack an archive from the first mirror that has it with its checksum."""
        import pooch

        folder, problems = place / self.where(), list[str]()
        for mirror in self.mirrors:
            if archive.endswith(".tar.gz"):
                folder, unpack = place, pooch.Untar(extract_dir=".")
            else:
                unpack = pooch.Decompress(name=archive.removesuffix(".gz"))
            try:
                pooch.retrieve(f"{mirror}{archive}", f"md5:{md5}", archive, folder, unpack)
                return
            except (OSError, ValueError) as error:
                problems.append(f"{mirror}{archive}: {error}")
        raise DataError(f"{self.kind} cannot be downloaded to {place}: {'; '.join(problems)}")

    def content(self, path: Path) -> bytes:
        """Return the bytes of a file, plain or packed by gzip, once they have the published checksum, if any."""
        if path.suffix == ".gz":
            try:
                with gzip.open(check_file(path, MAX_BYTES, DataError)) as packed:
                    found = packed.read(MAX_BYTES + 1)
            except (OSError, EOFError, zlib.error) as error:
                raise DataError(f"{path.name}: cannot be unpacked: {error}") from None
            if len(found) > MAX_BYTES:
                raise DataError(f"{path.name}: has more than {MAX_BYTES} bytes unpacked; allowed: at most as many")
        else:
            found = read_bytes(path, MAX_BYTES, DataError)
        name = path.name.removesuffix(".gz")
        md5 = hashlib.md5(found, usedforsecurity=False).hexdigest()
        if md5 != self.published.get(name, md5):
            raise DataError(
                f"{name} has the MD5 {md5}, and the published one is {self.published[name]}; a set of your own is read "
                'with data = { kind = "idx-files", name = ... }'
            )
        return found


@functools.lru_cache(maxsize=2)
def _read(part: InFiles, place: Path, _stamp: tuple[tuple[int, int], ...]) -> Dataset:
    """Return a whole set; cached, since studies load the same one for every run."""
    return part.read(place)


def _first(place: Path, ways: Sequence[str]) -> list[Path]:
    """Return the files that match the first pattern that any matches, by name."""
    found = (sorted(path for path in place.glob(way) if path.is_file()) for way in ways)
    return next(filter(None, found), [])


def first_ones(samples: int, share: float) -> BoolArray:
    """Return which samples are for training: the first ones of their order, at least one for each purpose."""
    train = min(max(1, int(share * samples)), samples - 1)
    return np.asarray(np.arange(samples) < train)


def numbered(names: Sequence[str]) -> IntArray:
    """Return a number for each name, in the order in which they come first.

    >>> numbered(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)


def parted(x: NDArray[Any], y: IntArray, train: BoolArray, users: Sequence[str] | None = None, **more: Any) -> Dataset:
    """Return the set of samples of which some are for training, whose users get numbers by their names."""
    of = None if users is None else numbered([user for user, use in zip(users, train, strict=True) if use])
    return Dataset(x[train], y[train], x[~train], y[~train], train_users=of, **more)
