"""A data set in public files that a user has put into the data folder."""

import functools
from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np

from fedsim.arrays import BoolArray
from fedsim.capabilities import USERS
from fedsim.errors import DataError
from fedsim.learning.data.datasets import Dataset, Limited, data_folder


class InFiles(Limited):
    """A data set in files of a form that its publishers chose. fedsim reads the files, and does not fetch them.

    Attributes
    ----------
    kind : name of the kind
    source : where the files are published, and how they are laid out in the data folder
    """

    kind: ClassVar[str]
    source: ClassVar[str]

    @property
    def provides(self) -> frozenset[str]:
        """Users: most sets give the user of each sample; one that does not overrides this."""
        return frozenset({USERS})

    @abstractmethod
    def where(self) -> str:
        """Return the file or folder in the data folder, as a user would look for it."""

    @abstractmethod
    def wanted(self) -> tuple[tuple[str, ...], ...]:
        """Return patterns of the needed paths in the data folder; any one of each tuple suffices."""

    def missing(self, place: Path) -> list[str]:
        """Return the patterns that no file of a data folder matches, in words."""
        return [" or ".join(ways) for ways in self.wanted() if not any(any(place.glob(way)) for way in ways)]

    def found(self, data_dir: Path | None = None) -> tuple[str, ...]:
        """Return which parts of the set are in a data folder, whatever the options; no content is read."""
        return (self.where(),) if self.available(data_dir) else ()

    @abstractmethod
    def files(self, place: Path) -> tuple[Path, ...]:
        """Return the files, or some of them, that stand for the set in a data folder; none if it is not there."""

    @abstractmethod
    def read(self, place: Path) -> Dataset:
        """Return the whole set in a data folder, or raise `DataError` that names a damaged file."""

    def available(self, data_dir: Path | None = None) -> bool:
        return bool(self.files(data_folder(data_dir)))

    def load(self, data_dir: Path | None = None) -> Dataset:
        place = data_folder(data_dir)
        files = self.files(place)
        if not files:
            missing = ", ".join(self.missing(place))
            raise DataError(
                f"{self.kind} is not in {place / self.where()} (missing: {missing}); name another "
                f"folder with --data-dir or FEDSIM_DATA, or get it: {self.source}"
            )
        stamp = tuple((path.stat().st_mtime_ns, path.stat().st_size) for path in files)
        return self.limited(_read(self.model_copy(update={"train_limit": None}), place.resolve(), stamp))


@functools.lru_cache(maxsize=2)
def _read(part: InFiles, place: Path, _stamp: tuple[tuple[int, int], ...]) -> Dataset:
    """Return a whole set; cached, since studies load the same one for every run."""
    return part.read(place)


def existing(*paths: Path) -> tuple[Path, ...]:
    return paths if all(path.is_file() for path in paths) else ()


def first_ones(samples: int, share: float) -> BoolArray:
    """Return which samples are for training: the first ones of their order, at least one for each purpose."""
    train = min(max(1, int(share * samples)), samples - 1)
    return np.asarray(np.arange(samples) < train)
