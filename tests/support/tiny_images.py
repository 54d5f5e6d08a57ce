"""A data set small enough to check by hand."""

from pathlib import Path

import numpy as np

from fedsim.learning import Dataset
from fedsim.registry import Component


class Tiny(Component):
    """Random grey images whose brighter half tells the class, as a user would write a set of his own."""

    samples: int = 96
    side: int = 4
    salt: int = 0

    def load(self, data_dir: Path | None = None) -> Dataset:
        rng = np.random.default_rng(self.salt)
        images = rng.integers(0, 120, (2 * self.samples, self.side, self.side, 1), dtype=np.uint8)
        labels = rng.integers(0, 3, 2 * self.samples)
        for label in range(3):
            images[labels == label, label] += 120
        half = self.samples
        return Dataset(images[:half], labels[:half], images[half:], labels[half:], classes=3, pixel_max=255)


def of_users(samples=240, users=24):
    data = Tiny(samples=samples).load()
    return data.train_x, data.train_y, np.arange(samples) % users
