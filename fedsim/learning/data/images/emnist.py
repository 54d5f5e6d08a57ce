"""EMNIST: handwritten digits and letters in MNIST's file format."""

from pathlib import Path
from typing import ClassVar, Final, Literal

import numpy as np

from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.images.idx import FILES, read_set
from fedsim.learning.data.in_files import InFiles

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

    source: ClassVar[str] = (
        "torchvision.datasets.EMNIST(FOLDER, split='byclass', download=True), or gzip.zip of "
        "biometrics.nist.gov/cs_links/EMNIST unpacked into EMNIST/raw, each file without .gz"
    )
    place: ClassVar[str] = "EMNIST/raw"
    paths: ClassVar[tuple[str, ...]] = tuple(
        f"{{where}}/emnist-{{division}}-{name.replace('t10k', 'test')}" for name in FILES
    )
    archive: ClassVar[str] = "division"
    tells_users: ClassVar[bool] = False

    division: Literal["byclass", "bymerge", "balanced", "letters", "digits", "mnist"] = "byclass"

    def read(self, place: Path) -> Dataset:
        classes, first = _CLASSES[self.division], int(self.division == "letters")
        x, y, test_x, test_y = read_set(self.files(place), self.content, classes, first)
        upright = (np.ascontiguousarray(images.transpose(0, 2, 1, 3)) for images in (x, test_x))
        return Dataset(next(upright), y, next(upright), test_y, classes=classes, pixel_max=255)
