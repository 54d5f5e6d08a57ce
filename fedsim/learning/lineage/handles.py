"""Handles: what a number would be, before anybody needs it.

A model descends from the model before it and from updates, or from several models that are merged; an update from
a training; a training from a model and, where optimiser state is kept, from the client's state before. Each has a
digest of everything that determines its numbers. Once settled, models and trainings hold their values and let go
of their parents, so that memory does not grow with the rounds. An update keeps the model alive that its training
starts from, for as long as somebody holds the update: a stale one may yet be combined with it.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from fedsim.arrays import Vector
from fedsim.learning.contracts import Evaluation, Release

State = Mapping[str, Vector]


def digest_of(*ingredients: str | bytes | float | None) -> str:
    """Return a hash of ingredients in their order, 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    for item in ingredients:
        encoded = item if isinstance(item, bytes) else repr(item).encode()
        digest.update(f"{type(item).__name__}{len(encoded)}:".encode())
        digest.update(encoded)
    return digest.hexdigest()


def description(part: object) -> str:
    """Return the text that stands for a part in digests: its class and settings.

    A part that is no pydantic model speaks through its ``repr``; where that is Python's default, results are
    re-used for the very same object only.
    """
    settings = part.model_dump_json() if isinstance(part, BaseModel) else repr(part)
    return f"{type(part).__module__}:{type(part).__qualname__} {settings}"


@dataclass(frozen=True)
class TrainingTask:
    """All that an executor needs to train one client.

    Attributes
    ----------
    base : float32 vector to start from
    rows : the client's samples in the training set
    work : share of the local work to do, in (0, 1]
    rng : generator at the start of the training's own stream
    state : optimiser state to go on from; empty for a fresh optimiser
    """

    base: Vector
    rows: NDArray[np.int64]
    work: float
    rng: np.random.Generator
    state: State = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingResult:
    """What a training gave.

    Attributes
    ----------
    difference : float32 vector, trained model minus base, buffers included
    loss : mean training loss over the samples passed
    loss_rms : root mean square of the losses of single samples during the first pass over the client's data
    state : optimiser state after it; empty unless it is kept
    """

    difference: Vector
    loss: float
    loss_rms: float
    state: State

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return self.difference.nbytes + sum(values.nbytes for values in self.state.values())


class StateHandle:
    """The optimiser state that a training leaves; keeps the training only until it has run."""

    def __init__(self, training: "Training") -> None:
        self.digest: Final = training.digest
        self.training: Training | None = training
        self.value: State = {}


class Training:
    """One client's local training, run at most once, when somebody needs it.

    Attributes
    ----------
    digest : hash of base, client's data, settings, stream, work and the optimiser state before
    task : makes the task from the settled parents; dropped once it has run
    result : None until it has run
    state : what a later training of the same client may go on from
    """

    def __init__(
        self,
        digest: str,
        base: "ModelHandle",
        previous: StateHandle | None,
        make_task: Callable[[Vector, State], TrainingTask],
    ) -> None:
        self.digest: Final = digest
        self.result: TrainingResult | None = None
        self.state: Final = StateHandle(self)
        self._base: ModelHandle | None = base
        self._previous = previous
        self._make_task = make_task

    @property
    def settled(self) -> bool:
        """Whether it has run."""
        return self.result is not None

    def parents(self) -> "Sequence[ModelHandle | Training]":
        """Return what must be settled before it can run."""
        before = self._previous.training if self._previous is not None else None
        return [node for node in (self._base, before) if node is not None]

    def task(self) -> TrainingTask:
        """Return what an executor must do; its parents are settled."""
        if self._base is None:
            raise RuntimeError(f"training {self.digest} has run already")
        return self._make_task(self._base.vector, self._previous.value if self._previous is not None else {})

    def settle(self, result: TrainingResult) -> None:
        """Take the result and let go of the parents."""
        self.result = result
        self.state.value, self.state.training = result.state, None
        self._base = self._previous = None


@dataclass(frozen=True, eq=False)
class UpdateHandle:
    """What one client sends after a training from a base, made private by a release if there is one."""

    digest: str
    client: int
    base: "ModelHandle"
    training: Training
    release: Release | None


class ModelHandle:
    """A global model: its numbers once settled, its ancestors before.

    Attributes
    ----------
    digest : hash of everything that determines the numbers
    version : how many aggregations led to it
    evaluation : how good it is, once somebody has asked

    It is given its numbers (``vector``), or its parents and how they are combined once they are settled.
    """

    def __init__(
        self,
        digest: str,
        version: int,
        parents: "Sequence[ModelHandle | Training]" = (),
        combine: Callable[[], Vector] | None = None,
        vector: Vector | None = None,
    ) -> None:
        self.digest: Final = digest
        self.version: Final = version
        self.evaluation: Evaluation | None = None
        self._parents, self._combine, self._vector = tuple(parents), combine, vector

    @property
    def settled(self) -> bool:
        """Whether its numbers are known."""
        return self._vector is not None

    @property
    def vector(self) -> Vector:
        """The numbers; the handle must be settled."""
        if self._vector is None:
            raise RuntimeError(f"model {self.digest} of version {self.version} is not settled yet")
        return self._vector

    def parents(self) -> "Sequence[ModelHandle | Training]":
        """Return what must be settled before it can be."""
        return self._parents

    def settle(self) -> None:
        """Combine the parents, which are settled, and let go of them."""
        if self._combine is None:
            raise RuntimeError(f"model {self.digest} of version {self.version} has no parents")
        self._vector = self._combine()
        self._parents, self._combine = (), None
