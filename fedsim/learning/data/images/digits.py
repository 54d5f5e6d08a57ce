"""scikit-learn's handwritten digits, the default set."""

import gzip
import importlib.util
from pathlib import Path
from typing import Final

import numpy as np

from fedsim.errors import DataError
from fedsim.learning.data.datasets import AlwaysThere, Dataset

_SIDE: Final = 8


class Digits(AlwaysThere):
    """scikit-learn's handwritten digits: 1,797 grey images of 8 x 8 pixels, 10 classes; part of scikit-learn.

    The set comes without a division. Sorted by class, and within a class in the file's order, every fifth
    sample from the first on is a test sample: 1,437 for training and 360 for testing, a fifth of every class
    to within one, the same for every seed. Training samples keep the file's order.

    Examples
    --------
    >>> data = Digits().load()
    >>> data.train_x.shape, data.test_y.size, np.bincount(data.test_y).tolist()
    ((1437, 8, 8, 1), 360, [36, 36, 36, 36, 37, 36, 36, 36, 35, 36])
    >>> Digits(train_limit=200).load().train_y.size
    200
    """

    def read(self) -> Dataset:
        # Read here: the same by scikit-learn takes ten times as long, beside a second for its import.
        found = importlib.util.find_spec("sklearn")
        path = Path((found and found.origin) or "sklearn").parent / "datasets" / "data" / "digits.csv.gz"
        try:
            text = gzip.decompress(path.read_bytes()).decode()
        except OSError as error:
            raise DataError(
                f"learning.data: 'digits' is a file of scikit-learn that cannot be read ({error})"
            ) from error
        rows = np.fromstring(text.replace("\n", ","), dtype=np.int64, sep=",").reshape(-1, _SIDE**2 + 1)
        images, labels = rows[:, :-1].astype(np.uint8).reshape(-1, _SIDE, _SIDE, 1), rows[:, -1].copy()
        test = np.zeros(labels.size, dtype=bool)
        test[np.argsort(labels, kind="stable")[::5]] = True
        return Dataset(images[~test], labels[~test], images[test], labels[test], classes=10, pixel_max=16)
