"""Data sets small enough to check by hand, with the targets of each task."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.learning import Dataset
from fedsim.registry import Component


class TinyTargets(Component):
    """Random samples with targets that follow from them."""

    of: Literal["labels", "numbers", "tokens", "label-sets"] = "numbers"
    samples: int = 96
    salt: int = 0

    def load(self, data_dir: Path | None = None) -> Dataset:
        rng = np.random.default_rng(self.salt)
        if self.of == "tokens":
            # Each token is followed by the next one of 1..6; texts end after 2 to 8 places, and 0 fills them up.
            texts = 1 + (rng.integers(0, 6, (2 * self.samples, 1)) + np.arange(9)) % 6
            length = rng.integers(2, 9, (2 * self.samples, 1))
            x, y = (np.where(np.arange(8) < length, part, 0) for part in (texts[:, :-1], texts[:, 1:]))
            return self._halves(x, y, vocabulary=7)
        x = rng.normal(size=(2 * self.samples, 5)).astype(np.float32)
        hidden = (x @ rng.normal(size=(5, 3))).astype(np.float32)
        if self.of == "labels":
            return self._halves(x, hidden.argmax(1), classes=3)
        return self._halves(x, hidden if self.of == "numbers" else (hidden > 0).astype(np.uint8))

    def _halves(self, x: NDArray[Any], y: NDArray[Any], **more: int) -> Dataset:
        half = self.samples
        return Dataset(x[:half], y[:half], x[half:], y[half:], **more)


class EachPlace(Component):
    def build(self, shape: Any, classes: int) -> Any:
        from torch import nn

        return nn.Sequential(nn.Embedding(shape.vocabulary, 6), nn.Linear(6, classes))
