"""Fashion-MNIST whose last training samples are the validation set, by which rates are chosen."""

from dataclasses import replace
from pathlib import Path

from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.images.mnist import FashionMNIST

HELD_OUT = 10_000


class WithValidation(FashionMNIST):
    """The training samples without the last ones, which stand in the place of the test set."""

    def load(self, data_dir: Path | None = None) -> Dataset:
        whole = FashionMNIST().load(data_dir)
        x, y = whole.train_x, whole.train_y
        first = self.limited(replace(whole, train_x=x[:-HELD_OUT], train_y=y[:-HELD_OUT]))
        return replace(first, test_x=x[-HELD_OUT:], test_y=y[-HELD_OUT:])
