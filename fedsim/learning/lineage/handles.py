"""Handles: descriptions of numbers that have not been computed yet.

A model descends from the model before it and from updates, or from several models of which it is the mean; an update
from a training; a training from a model and, where optimiser state lasts, from the client's state before. Each has a
digest of everything that determines its numbers. A model that has its numbers lets go of its parents, and so does the
state of an optimiser, so that memory does not grow with the rounds. An update holds the model that its training starts
from as long as the update itself lives, since a stale update may yet be combined with it.
"""

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol, overload

from fedsim.arrays import Vector
from fedsim.learning.drawn_samples import Draw
from fedsim.learning.evaluation import PendingEvaluation
from fedsim.learning.executors.contracts import OptimizerState
from fedsim.learning.lineage.digests import CohortDigests, digest_of
from fedsim.learning.model_and_update import Release
from fedsim.learning.server_optimizers.contracts import ServerState
from fedsim.learning.store.contracts import Record

STEPS: Final = "step."
"""Prefix of the names of what steps remember of a client's messages, among the arrays of its state."""

OWN: Final = "algorithm."
"""Prefix of the names of a local algorithm's state, on a client and on a server."""

Combined = tuple[Vector, ServerState | None]
"""Numbers of a model, shape (d,), and the state of the server optimiser that made it, if any."""


class Outgoing:
    """The message of a client that remembers something of its messages."""

    __slots__ = ("sent",)

    def __init__(self) -> None:
        self.sent: Vector | None = None


class StateHandle:
    """State that a training leaves to the client's next one, of its optimiser and of its messages.

    It holds the training only until its value is known.
    """

    __slots__ = ("__weakref__", "_after", "training", "value")

    def __init__(self, training: "Training") -> None:
        self._after = training.work_digest
        self.training: Training | None = training
        self.value: OptimizerState | None = None

    @property
    def digest(self) -> str:
        """Hash of the training that leaves it; computed when it is read."""
        return digest_of("state", self._after)

    def take(self, value: OptimizerState) -> None:
        """Take the value and let go of the training."""
        self.value, self.training = value, None


class Training:
    """One client's local training, which runs when its result is needed, and the update that is sent of it.

    Its difference is let go of when all models that wait for it have it; if it is needed once more, the training runs
    once more.
    """

    # Most trainings keep these values; to write them into each of a cohort would take as long as to digest it.
    repeat: int = 0
    previous: StateHandle | None = None
    outgoing: Outgoing | None = None
    release: Release | None = None
    level: int = 0
    draw: Draw | None = None
    report: Record | None = None
    difference: Vector | None = None
    state: StateHandle | None = None
    counted: bool = False
    heir: "weakref.ref[ModelHandle] | None" = None
    waiting: int = 0

    def __init__(self, work_digest: str, base: "ModelHandle", client: int, work: float) -> None:
        self.work_digest = self.digest = work_digest
        self.base = base
        self.client = client
        self.work = work

    @property
    def materialized(self) -> bool:
        return self.difference is not None

    @property
    def ready(self) -> bool:
        """Whether all that it starts from is in memory."""
        return self.base.materialized and (self.previous is None or self.previous.value is not None)

    @property
    def optimizer_state(self) -> OptimizerState:
        """The state that it goes on from; empty for a fresh optimiser."""
        before = self.previous
        if before is None or before.value is None:
            return {}
        return {name: values for name, values in before.value.items() if not name.startswith((STEPS, OWN))}

    @property
    def step_memory(self) -> OptimizerState:
        """What the steps of updates remember of the client's earlier messages, by their own names."""
        before = self.previous
        if before is None or before.value is None:
            return {}
        return {name.removeprefix(STEPS): one for name, one in before.value.items() if name.startswith(STEPS)}

    def parents(self) -> "Sequence[ModelHandle | Training]":
        """Return what must have its numbers before it can run."""
        before = self.previous
        if before is None or before.training is None:
            return (self.base,)
        return self.base, before.training

    def taken(self) -> None:
        """Note that a model has the difference, or does not need it; the last one lets go of it."""
        self.waiting -= 1
        if not self.waiting:
            self.forget_unless_awaited()

    def forget_unless_awaited(self) -> None:
        """Let go of a difference that no model waits for."""
        if not self.waiting:
            self.difference = None
            if self.outgoing is not None:
                self.outgoing.sent = None


class Cohort(Sequence[Training]):
    """Trainings of different clients from one model, as columns until one of them is asked for by itself.

    Most cohorts are added up and nothing else is asked of them, so that no training needs an object.
    """

    __slots__ = (
        "__weakref__",
        "_opened",
        "base",
        "clients",
        "counted",
        "digests",
        "heir",
        "reports",
        "waiting",
        "work",
    )

    def __init__(
        self, base: "ModelHandle", clients: Sequence[int], work: Sequence[float], digests: CohortDigests
    ) -> None:
        self.base, self.clients, self.work, self.digests = base, clients, work, digests
        self.counted, self.waiting = False, 0
        self.heir: weakref.ref[ModelHandle] | None = None
        self.reports: Sequence[Record] = ()
        self._opened: list[Training] | None = None

    @property
    def opened(self) -> bool:
        """Whether the trainings have objects."""
        return self._opened is not None

    @property
    def trainings(self) -> list[Training]:
        if self._opened is None:
            columns = zip(self.digests.each(), self.clients, self.work, strict=True)
            self._opened = [Training(digest, self.base, client, share) for digest, client, share in columns]
            for training in self._opened:
                training.counted, training.waiting, training.heir = self.counted, self.waiting, self.heir
            for training, report in zip(self._opened, self.reports, strict=False):
                training.report = report
        return self._opened

    def __len__(self) -> int:
        return len(self.clients)

    @overload
    def __getitem__(self, place: int) -> Training: ...
    @overload
    def __getitem__(self, place: slice) -> list[Training]: ...
    def __getitem__(self, place: int | slice) -> Training | list[Training]:
        return self.trainings[place]

    def __iter__(self) -> Iterator[Training]:
        return iter(self.trainings)


class Recipe(Protocol):
    """How the numbers of a model are made of those of its parents."""

    def cohort(self) -> Cohort | None:
        """Return the trainings whose differences alone make the model of their base, as columns; or None."""
        ...

    def add(self, differences: Iterable[Vector]) -> None:
        """Take the differences of `cohort` in their order, each of shape (d,)."""
        ...

    def parents(self) -> "Sequence[ModelHandle | Training]": ...

    def take(self) -> None:
        """Take the parents whose numbers are there already, so that these need not stay in memory."""
        ...

    def combined(self) -> Combined:
        """Return the numbers; all parents have theirs, or have had them when they were taken."""
        ...

    def forget(self) -> None:
        """Let go of the parents: the numbers have come from elsewhere."""
        ...


class ModelHandle:
    """A server's model: its ancestors until its numbers are needed, then the numbers."""

    __slots__ = (
        "__weakref__",
        "_recipe",
        "_server_state",
        "_vector",
        "depth",
        "digest",
        "evaluation",
        "stale",
        "version",
        "waiting",
    )

    def __init__(
        self,
        digest: str,
        version: int,
        recipe: Recipe | None = None,
        vector: Vector | None = None,
        *,
        after: "Sequence[ModelHandle]" = (),
        trainings: int = 0,
    ) -> None:
        self.digest: Final = digest
        self.version: Final = version
        self.depth: int = 0 if recipe is None else 1 + max((model.depth for model in after), default=0)
        self.waiting: int = trainings + max((model.waiting for model in after), default=0)
        self.stale = False
        self.evaluation: PendingEvaluation | None = None
        self._recipe, self._vector = recipe, vector
        self._server_state: ServerState | None = None

    @property
    def materialized(self) -> bool:
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
        return () if self._recipe is None else self._recipe.parents()

    def cohort(self) -> Cohort | None:
        """Return the trainings that alone make it of its base, as long as none of them is asked for by itself."""
        return None if self._recipe is None else self._recipe.cohort()

    def add(self, differences: Iterable[Vector]) -> None:
        if self._recipe is not None:
            self._recipe.add(differences)

    def take(self) -> None:
        if self._recipe is not None:
            self._recipe.take()

    def materialize(self) -> None:
        """Combine the parents, which have their numbers, and let go of them."""
        if self._recipe is None:
            raise RuntimeError(f"model {self.digest} of version {self.version} has no parents")
        self._vector, self._server_state = self._recipe.combined()
        self._forget()

    def load(self, vector: Vector, server_state: ServerState | None) -> None:
        """Take stored numbers, and let go of the parents."""
        if self._recipe is not None:
            self._recipe.forget()
        self._vector, self._server_state = vector, server_state
        self._forget()

    def _forget(self) -> None:
        self._recipe, self.depth, self.waiting = None, 0, 0


Node = ModelHandle | Training

Sent = Callable[[Training], Vector]
"""Gives what the server receives of a training whose difference is in memory, shape (d,)."""
