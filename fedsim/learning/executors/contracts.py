"""fedsim.learning.executors.contracts."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import Vector
from fedsim.learning.contracts import Evaluation
from fedsim.learning.lineage.handles import TrainingResult, TrainingTask
from fedsim.learning.lineage.store import Kept

Asked = TypeVar("Asked")
Found = TypeVar("Found", bound=Kept)


class Executor(Protocol):
    """What computes batches of trainings; every executor gives the same results."""

    @property
    def initial(self) -> Vector:
        """The model of version 0."""
        ...

    @property
    def parameters(self) -> int:
        """How many coordinates of a model, the first ones, are parameters; the others are buffers."""
        ...

    @property
    def exempt_mask(self) -> NDArray[np.bool_]:
        """Coordinates that a privacy mechanism may let pass in clear."""
        ...

    @property
    def smallest_batch(self) -> int:
        """Fewest samples a batch must have."""
        ...

    def train(self, tasks: Sequence[TrainingTask]) -> list[TrainingResult]:
        """Return what each client learns."""
        ...

    def evaluate(self, vector: Vector) -> Evaluation:
        """Return how good a model is on the test set."""
        ...

    def score(self, vector: Vector, rows: Sequence[NDArray[np.int64]]) -> list[Evaluation]:
        """Return how good a model is on each of several parts of the training set, without training."""
        ...
