"""What a simulation asks of learning, without torch: handles, not numbers.

A model and an update are handles with a lineage. Asking for an update computes nothing; work happens when
somebody needs a number, for the updates that were delivered. An update that nobody uses is never trained.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Model(Protocol):
    """A global model: its lineage's digest and its version (how many aggregations led to it, from 0)."""

    @property
    def digest(self) -> str:
        """Hash of everything that determines the numbers."""
        ...

    @property
    def version(self) -> int:
        """How many aggregations led to it."""
        ...


class Update(Protocol):
    """What one client sends: the difference between its trained model and the model it started from."""

    @property
    def digest(self) -> str:
        """Hash of everything that determines the numbers."""
        ...


@dataclass(frozen=True)
class Release:
    """How an update is made private before it is sent.

    Attributes
    ----------
    epsilon : float
        What this upload costs of the client's budget.
    index : int
        The how-manieth release of this client it is, from 1; the noise is drawn for (client, index).
    """

    epsilon: float
    index: int


@dataclass(frozen=True)
class Evaluation:
    """How good a model is on the whole test set: share of right answers and mean loss."""

    accuracy: float
    loss: float


class Learner(Protocol):
    """What is learned in one run.

    Attributes
    ----------
    model_bits : size of the model, and of an update, on the air; None if it has none
    samples : training samples of every client, shape (K,); zero where a run is about timing only and says so
    flops_per_sample : floating-point operations to train on one sample, forward and backward; None if unknown
    """

    @property
    def flops_per_sample(self) -> float | None:
        """Floating-point operations to train on one sample, forward and backward; None if nobody said."""
        ...

    @property
    def model_bits(self) -> float | None:
        """Size of the model, and of an update, on the air; None if nobody said."""
        ...

    @property
    def samples(self) -> NDArray[np.int64]:
        """Training samples of every client, shape (K,)."""
        ...

    def work_samples(self, client: NDArray[np.int64], work: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return how many samples each client passes through its model in one local training."""
        ...

    def initial(self) -> Model:
        """Return the model of version 0."""
        ...

    def update(self, model: Model, client: int, release: Release | None = None, work: float = 1.0) -> Update:
        """Return what a client would send after training from a model; computes nothing."""
        ...

    def aggregate(self, model: Model, updates: Sequence[Update], weights: NDArray[np.float64]) -> Model:
        """Return the next model from delivered updates with their weights; computes nothing."""
        ...

    def losses(self, updates: Sequence[Update]) -> NDArray[np.float64]:
        """Return the mean training loss behind each update, training where it has not been done."""
        ...

    def evaluate(self, model: Model) -> Evaluation | None:
        """Return how good a model is, training whatever it descends from; None without learning."""
        ...
