"""scikit-learn's diabetes patients, a set whose targets are numbers."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray
from fedsim.learning.data.datasets import AlwaysThere, Dataset

_EVERY: Final = 5
"""Every fifth patient is a test sample."""


class Diabetes(AlwaysThere):
    """scikit-learn's diabetes patients: ten numbers of 442 people, and how far the disease went (Efron et al. 2004).

    The numbers are age, sex, body mass index, mean blood pressure and six of the blood serum; the target is how far the
    disease has gone one year later. Every fifth patient from the first on is a test sample: 353 for training and 89 for
    testing, the same for every seed. All columns, the target among them, are shifted and scaled so that the training
    samples have mean 0 and variance 1. A mean square error of 1 is thus that of the mean of the training samples.

    Examples
    --------
    >>> data = Diabetes().load()
    >>> data.train_x.shape, data.test_y.shape, data.targets_in_words
    ((353, 10), (89, 1), 'float32 of shape (n, 1)')
    """

    def read(self) -> Dataset:
        from sklearn.datasets import load_diabetes

        numbers, progress = load_diabetes(return_X_y=True, scaled=False)
        test = np.arange(len(progress)) % _EVERY == 0
        x, y = (_standard(column, ~test) for column in (numbers, progress[:, None]))
        return Dataset(x[~test], y[~test], x[test], y[test])


def _standard(columns: FloatArray, of: BoolArray) -> NDArray[np.float32]:
    """Shift and scale columns so that the chosen rows have mean 0 and variance 1."""
    scaled = (columns - columns[of].mean(axis=0)) / columns[of].std(axis=0)
    return np.asarray(scaled, dtype=np.float32)
