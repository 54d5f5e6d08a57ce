"""EMNIST: handwritten digits and letters in MNIST's file format."""

from pathlib import Path
from typing import ClassVar, Final, Literal

import numpy as np

from fedsim.arrays import IntArray
from fedsim.errors import DataError
from fedsim.learning.data.datasets import Dataset, Images
from fedsim.learning.data.idx import read_pair
from fedsim.learning.data.in_files import InFiles, existing

_CLASSES: Final = {"byclass": 62, "bymerge": 47, "balanced": 47, "letters": 26, "digits": 10, "mnist": 10}


class EMNIST(InFiles):
    """EMNIST: digits and letters, 28 x 28 grey (Cohen et al. 2017), from the files that torchvision unpacks.

    The files have rows and columns exchanged; here images stand upright. Labels of ``"letters"`` are 0 to 25 instead
    of 1 to 26.

    Attributes
    ----------
    division : ``"byclass"``, ``"bymerge"``, ``"balanced"``, ``"letters"``, ``"digits"`` or ``"mnist"``
        Of the publishers' six divisions; 814,255 images of 62 classes by default.
    """

    kind: ClassVar[str] = "emnist"
    source: ClassVar[str] = (
        "torchvision.datasets.EMNIST(FOLDER, split='byclass', download=True), or gzip.zip of "
        "biometrics.nist.gov/cs_links/EMNIST unpacked into EMNIST/raw, each file without .gz"
    )

    division: Literal["byclass", "bymerge", "balanced", "letters", "digits", "mnist"] = "byclass"

    @property
    def provides(self) -> frozenset[str]:
        return frozenset()

    def where(self) -> str:
        return "EMNIST/raw"

    def wanted(self) -> tuple[tuple[str, ...], ...]:
        return tuple(
            (f"EMNIST/raw/emnist-{self.division}-{part}-{what}-ubyte",)
            for part in ("train", "test")
            for what in ("images-idx3", "labels-idx1")
        )

    def found(self, data_dir: Path | None = None) -> tuple[str, ...]:
        divisions = [self.model_copy(update={"division": name}) for name in _CLASSES]
        return tuple(f"division = '{one.division}'" for one in divisions if one.available(data_dir))

    def files(self, place: Path) -> tuple[Path, ...]:
        return existing(*(place / name for (name,) in self.wanted()))

    def read(self, place: Path) -> Dataset:
        files = self.files(place)
        return Dataset(*self._part(*files[:2]), *self._part(*files[2:]), classes=_CLASSES[self.division], pixel_max=255)

    def _part(self, images: Path, labels: Path) -> tuple[Images, IntArray]:
        pixels, found = read_pair(images, labels)
        found = found - (self.division == "letters")
        if found.min() < 0 or found.max() >= _CLASSES[self.division]:
            raise DataError(f"{labels}: has labels beyond the {_CLASSES[self.division]} of {self.division!r}")
        return np.ascontiguousarray(pixels.transpose(0, 2, 1, 3)), found
