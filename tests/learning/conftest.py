"""A data set small enough to check by hand, and learners over it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedsim.learning import Dataset, Supervised
from fedsim.learning.supervised import SupervisedLearner
from fedsim.parts import Part
from fedsim.streams import Streams


class Tiny(Part):
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


@pytest.fixture
def tiny() -> Dataset:
    return Tiny().load()


@pytest.fixture
def make_learner() -> Callable[..., SupervisedLearner]:
    def make(
        clients: int = 6, seed: int = 3, mechanism: Any = None, store: Any = None, **settings: Any
    ) -> SupervisedLearner:
        table = {"data": Tiny(), "model": {"hidden": [5]}, **settings}
        learner = Supervised.model_validate(table).build(clients, Streams(seed), mechanism, store)
        assert isinstance(learner, SupervisedLearner)
        return learner

    return make
