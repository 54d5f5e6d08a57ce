"""A data set in public files of the data folder: fetched on request, found, compared with published checksums, read."""

import functools
import hashlib
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator

from fedsim.arrays import BoolArray, IntArray
from fedsim.capabilities import USERS
from fedsim.errors import DataError
from fedsim.inputs.archives import unpacked
from fedsim.learning.data.datasets import DATASETS, Dataset, Limited, data_folder
from fedsim.registry import refusal

MAX_BYTES: Final = 1 << 31
"""Size of the largest file that is read as a whole."""
OR: Final = " or "
"""Between the ways in which a file of a set may lie in the data folder."""
NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,99}")


def _named(what: str) -> AfterValidator:
    def check(value: str) -> str:
        if NAME.fullmatch(value) is None:
            raise refusal("name", f"it must be the name of {what}: letters, digits, '-', '_' and '.'")
        return value

    return AfterValidator(check)


FolderName = Annotated[str, _named("a folder")]
"""A name in the data folder, without a path."""
FileName = Annotated[str, _named("a file without its ending")]


class InFiles(Limited):
    """A data set in files of a form that its publishers chose.

    Attributes
    ----------
    source : where the files are published, and how they are laid out in the data folder
    place : file or folder in the data folder, as a user would look for it; ``{...}`` stands for an option
    paths : patterns of the needed paths in the data folder, with ``{where}`` for the place; of several ways, parted by
        `OR`, the first one that a file has counts; by default the names of the published files
    archive : option of which each value names another archive, if there is one
    published : MD5 of each file, unpacked; one that has another is refused
    archives : MD5 of each published archive; a set without any is not fetched by fedsim
    mirrors : addresses of folders with the archives, asked in this order
    tells_users : whether the files say to whom each sample belongs
    users_path : pattern of a further file, needed where its samples are to have users
    """

    source: ClassVar[str]
    place: ClassVar[str]
    paths: ClassVar[tuple[str, ...]] = ()
    archive: ClassVar[str] = ""
    published: ClassVar[Mapping[str, str]] = {}
    archives: ClassVar[Mapping[str, str]] = {}
    mirrors: ClassVar[tuple[str, ...]] = ()
    tells_users: ClassVar[bool] = True
    users_path: ClassVar[str] = ""

    @property
    def with_users(self) -> bool:
        return self.tells_users

    @property
    def provides(self) -> frozenset[str]:
        return frozenset({USERS} if self.with_users else ())

    def where(self) -> str:
        return self.place.format_map(dict(self))

    def wanted(self) -> tuple[str, ...]:
        """Return the patterns of the needed paths, as the options have them."""
        paths = self.paths or [f"{{where}}/{name}" for name in self.published]
        paths = (*paths, self.users_path) if self.with_users and self.users_path else paths
        return tuple(path.format_map({**dict(self), "where": self.where()}) for path in paths)

    @abstractmethod
    def read(self, place: Path) -> Dataset:
        """Return the whole set in a data folder, or raise `DataError` that names a damaged file."""

    def files(self, place: Path) -> tuple[Path, ...]:
        """Return the files that stand for the set in a data folder; none if one is missing."""
        found = [_first(place, ways.split(OR)) for ways in self.wanted()]
        return tuple(path for paths in found for path in paths) if all(found) else ()

    def missing(self, place: Path) -> list[str]:
        return [ways for ways in self.wanted() if not _first(place, ways.split(OR))]

    def found(self, data_dir: Path | None = None) -> tuple[str, ...]:
        if not self.archive:
            place = data_folder(data_dir)
            files = self.files(place)
            return (str(files[0].relative_to(place)) if len(files) == 1 else self.where(),) if files else ()
        values = get_args(type(self).model_fields[self.archive].annotation)
        parts = [self.model_copy(update={self.archive: value}) for value in values]
        return tuple(
            f"{self.archive} = '{value}'" + (f": {part.where()}" if part.where() != self.place else "")
            for value, part in zip(values, parts, strict=True)
            if part.available(data_dir)
        )

    def available(self, data_dir: Path | None = None) -> bool:
        return bool(self.files(data_folder(data_dir)))

    def lacking(self, data_dir: Path | None = None) -> str:
        """Return in words which files are missing, and how to get them; nothing where none is."""
        place, missing = data_folder(data_dir), ", ".join(self.missing(data_folder(data_dir)))
        way = f"fetch it: {self._fetched_by(place)}" if self.archives else f"get it: {self.source}"
        return missing and (
            f"{DATASETS.kind_of(self)} is not in {place / self.where()} (missing: {missing}); name another folder with "
            f"--data-dir or FEDSIM_DATA, or {way}"
        )

    def _fetched_by(self, place: Path) -> str:
        return f"fedsim data {DATASETS.kind_of(self)} --download --data-dir {place}"

    def load(self, data_dir: Path | None = None) -> Dataset:
        place, files = data_folder(data_dir), self.files(data_folder(data_dir))
        if lacking := self.lacking(data_dir):
            raise DataError(lacking)
        stamp = tuple((path.stat().st_mtime_ns, path.stat().st_size) for path in files)
        try:
            whole = _read(self.model_copy(update={"train_limit": None}), place.resolve(), stamp)
        except DataError as error:
            if not self.archives:
                raise
            what = f"{DATASETS.kind_of(self)} in {place / self.where()} is damaged ({error})"
            raise DataError(f"{what}; remove it and fetch it again: {self._fetched_by(place)}") from None
        return self.limited(whole)

    def download(self, data_dir: Path | None = None) -> None:
        place = data_folder(data_dir)
        if not self.available(place):
            for archive, md5 in self.archives.items():
                self._fetch(place, archive, md5)

    def _fetch(self, place: Path, archive: str, md5: str) -> None:
        """Fetch and unpack an archive from the first mirror that has it with its checksum."""
        import pooch

        folder, unpack = place / self.where(), pooch.Decompress(name=archive.removesuffix(".gz"))
        if archive.endswith(".tar.gz"):
            folder, unpack = place, pooch.Untar(extract_dir=".")
        problems = list[str]()
        for mirror in self.mirrors:
            try:
                pooch.retrieve(f"{mirror}{archive}", f"md5:{md5}", archive, folder, unpack)
                return
            except (OSError, ValueError) as error:
                problems.append(f"{mirror}{archive}: {error}")
        raise DataError(f"{DATASETS.kind_of(self)} cannot be downloaded to {place}: {'; '.join(problems)}")

    def content(self, path: Path) -> bytes:
        """Return the bytes of a file, plain or packed by gzip, once they have the published checksum, if any."""
        found = unpacked(path, MAX_BYTES)
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


@contextmanager
def form_of(path: Path, form: str) -> Iterator[None]:
    """Name a file and its form in the error of whatever reads a damaged one."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # whatever a library makes of a damaged file
        raise DataError(f"{path}: cannot be read as {form}: {type(error).__name__}: {error}") from error


def first_ones(samples: int, share: float) -> BoolArray:
    """Return which samples are for training: the first ones of their order, at least one for each purpose."""
    train = min(max(1, int(share * samples)), samples - 1)
    return np.asarray(np.arange(samples) < train)


def check_parts(path: Path, train: BoolArray) -> None:
    if not train.any() or train.all():
        raise DataError(f"{path}: has no samples for training, or none for tests; allowed: the publishers' whole set")


def owners(parts: Sequence[Sized]) -> IntArray:
    """Return the number of the part to which each row of parts belongs, when they stand one after the other.

    >>> owners(["ab", "", "c"]).tolist()
    [0, 0, 2]
    """
    return np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def numbered(names: Sequence[str]) -> IntArray:
    """Return a number for each name, in the order in which they come first.

    >>> numbered(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)


def parted(
    path: Path,
    x: NDArray[Any],
    y: Sequence[str] | IntArray,
    train: BoolArray,
    users: Sequence[str] | IntArray | None = None,
    **more: Any,
) -> Dataset:
    """Return the set of samples of a file of which some are for training; names of labels and users become numbers."""
    check_parts(path, train)
    if not isinstance(y, np.ndarray):
        names, y = np.unique(y, return_inverse=True)
        more["classes"] = len(names)
    if users is not None:
        users = np.asarray(users)[train]
        users = numbered(users.tolist()) if users.dtype.kind == "U" else users
    try:
        return Dataset(x[train], y[train], x[~train], y[~train], train_users=users, **more)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
