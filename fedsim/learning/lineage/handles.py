"""Handles: what a number would be, before it is needed.

A model descends from the model before it and from updates, or from several models of which it is the mean; an update
from a training; a training from a model and, where optimiser state is kept, from the client's state before. Each has a
digest of everything that determines its numbers. A model or a training that has its numbers lets go of its parents, so
that memory does not grow with the rounds. An update keeps the model alive that its training starts from, as long as the
update itself lives: a stale update may yet be combined with it.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fedsim.arrays import Vector
from fedsim.learning.contracts import Evaluation, Release
from fedsim.learning.executors.contracts import OptimizerState, TrainingJob, TrainingResult
from fedsim.learning.server_optimizers import ServerState

Combined = tuple[Vector, ServerState | None]
"""Numbers of a model, shape (d,), and the state of the server optimiser that made it; None for none."""


def digest_of(*ingredients: str | bytes | float | None) -> str:
    """Return a hash of ingredients in their order, 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    for item in ingredients:
        encoded = item if isinstance(item, bytes) else repr(item).encode()
        digest.update(f"{type(item).__name__}{len(encoded)}:".encode())
        digest.update(encoded)
    return digest.hexdigest()


class StateHandle:
    """The optimiser state that a training leaves; keeps the training alive only until it has run."""

    def __init__(self, training: "Training") -> None:
        self.digest: Final = training.digest
        self.training: Training | None = training
        self.value: OptimizerState = {}


class Training:
    """One client's local training, which runs at most once, when its result is needed.

    Parameters
    ----------
    digest : hash of base, client's data, settings, stream, work and the optimiser state before
    base : the model that it starts from
    previous : the state that it goes on from; None for a fresh optimiser
    make_job : makes the job from the numbers of base, shape (d,), and state

    Attributes
    ----------
    result : None until it has run
    state : what a later training of the same client may go on from
    """

    def __init__(
        self,
        digest: str,
        base: "ModelHandle",
        previous: StateHandle | None,
        make_job: Callable[[Vector, OptimizerState], TrainingJob],
    ) -> None:
        self.digest: Final = digest
        self.result: TrainingResult | None = None
        self.state: Final = StateHandle(self)
        self._base: ModelHandle | None = base
        self._previous = previous
        self._make_job = make_job

    @property
    def materialized(self) -> bool:
        """Whether it has run."""
        return self.result is not None

    def parents(self) -> "Sequence[ModelHandle | Training]":
        """Return what must have its numbers before it can run."""
        before = self._previous.training if self._previous is not None else None
        return [node for node in (self._base, before) if node is not None]

    def job(self) -> TrainingJob:
        """Return what an executor must do; its parents have their numbers."""
        if self._base is None:
            raise RuntimeError(f"training {self.digest} has run already")
        return self._make_job(self._base.vector, self._previous.value if self._previous is not None else {})

    def materialize(self, result: TrainingResult) -> None:
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
    """A server's model: its numbers once they are needed, its ancestors before.

    It is given its numbers (``vector``), or its parents and how their numbers are combined.

    Parameters
    ----------
    digest : hash of everything that determines the numbers
    version : how many aggregations led to it
    parents : models and trainings that it descends from
    combine : gives numbers and server state once all parents have theirs
    vector : the numbers, where they are known, shape (d,)

    Attributes
    ----------
    evaluation : accuracy and loss on the test set, once they have been asked for
    """

    def __init__(
        self,
        digest: str,
        version: int,
        parents: "Sequence[ModelHandle | Training]" = (),
        combine: Callable[[], Combined] | None = None,
        vector: Vector | None = None,
    ) -> None:
        self.digest: Final = digest
        self.version: Final = version
        self.evaluation: Evaluation | None = None
        self._parents, self._combine, self._vector = tuple(parents), combine, vector
        self._server_state: ServerState | None = None

    @property
    def materialized(self) -> bool:
        """Whether its numbers are known."""
        return self._vector is not None

    @property
    def vector(self) -> Vector:
        """The numbers, shape (d,); they must be known."""
        if self._vector is None:
            raise RuntimeError(f"the numbers of model {self.digest} of version {self.version} are not known yet")
        return self._vector

    @property
    def server_state(self) -> ServerState | None:
        """State of the server optimiser after the step that gave this model; None where no step gave it."""
        return self._server_state

    def parents(self) -> "Sequence[ModelHandle | Training]":
        """Return what must have its numbers before it can."""
        return self._parents

    def materialize(self) -> None:
        """Combine the parents, which have their numbers, and let go of them."""
        if self._combine is None:
            raise RuntimeError(f"model {self.digest} of version {self.version} has no parents")
        self._vector, self._server_state = self._combine()
        self._parents, self._combine = (), None
