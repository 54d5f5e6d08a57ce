"""What has been asked for: models and updates as handles, each with a digest of all that determines its numbers.

To ask computes nothing. An update is made by a training from a model and from what its client remembers; a model is
made of models and updates by a recipe. A model that has its numbers lets go of its recipe, and a state of its update,
so that memory does not grow with the rounds. An update holds the model that it starts from as long as it lives itself,
since a stale update may yet be combined with it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np

from fedsim.arrays import FloatArray, IntArray, Vector
from fedsim.errors import PartError
from fedsim.learning.aggregation.combining import Incoming
from fedsim.learning.contracts import Release
from fedsim.learning.drawn_samples import Draw, Drawn
from fedsim.learning.evaluation import PendingEvaluation
from fedsim.learning.executors.contracts import OptimizerState
from fedsim.learning.server_optimizers.contracts import ServerState
from fedsim.learning.steps.contracts import Sender
from fedsim.learning.steps.listed import Steps
from fedsim.learning.store.contracts import Record

_KINDS: Final = {kind: kind.__name__.encode() for kind in (str, bytes, int, float, type(None))}


def digest_of(*ingredients: str | bytes | float | None) -> str:
    """Return a hash of ingredients in their order, 32 hexadecimal digits."""
    parts = []
    for item in ingredients:
        kind = type(item)
        encoded = item if isinstance(item, bytes) else repr(item).encode()
        name = _KINDS[kind] if kind in _KINDS else kind.__name__.encode()
        parts.append(b"%s%d:%s" % (name, len(encoded), encoded))
    return blake2b(b"".join(parts), digest_size=16).hexdigest()


STEPS: Final = "step."
"""Prefix of the names of what steps remember of a client's messages, among the arrays of its state."""

OWN: Final = "algorithm."
"""Prefix of the names of a local algorithm's state, on a client and on a server."""

Combined = tuple[Vector, ServerState | None]
"""Numbers of a model, shape (d,), and the state of the server optimiser that made it, if any."""


class Result(NamedTuple):
    """What a training adds to its model, and what the server receives of it, each of shape (d,)."""

    difference: Vector
    sent: Vector


class State:
    """What a client remembers after a training, of its optimiser, its algorithm and its messages.

    It holds the update only until its value is known.
    """

    __slots__ = ("__weakref__", "_after", "update", "value")

    def __init__(self, update: "Update") -> None:
        self._after = update.work_digest
        self.update: Update | None = update
        self.value: OptimizerState | None = None

    @property
    def digest(self) -> str:
        return digest_of("state", self._after)

    def take(self, value: OptimizerState) -> None:
        self.value, self.update = value, None


class Update:
    """One client's training and what is sent of it; its result is in memory until a model has taken it."""

    # Most updates keep these values; to write them into each would take as long as to digest it.
    repeat: int = 0
    before: State | None = None
    state: State | None = None
    release: Release | None = None
    level: int = 0
    draw: Draw | None = None
    report: Record | None = None
    result: Result | None = None
    used: bool = False

    def __init__(self, work_digest: str, base: "Model", client: int, work: float) -> None:
        self.work_digest = self.digest = work_digest
        self.base, self.client, self.work = base, client, work

    @property
    def known(self) -> bool:
        return self.result is not None

    @property
    def keys(self) -> tuple[int, ...]:
        """Those of the stream of what own code draws for it, whatever executor, machine or release computes."""
        return self.client, self.base.version, self.repeat

    @property
    def sender(self) -> Sender:
        return Sender(self.client, self.base.version, self.repeat, self.release)

    @property
    def memory(self) -> OptimizerState:
        return {} if self.before is None or self.before.value is None else self.before.value

    def memory_of(self, prefix: str) -> OptimizerState:
        return {name.removeprefix(prefix): one for name, one in self.memory.items() if name.startswith(prefix)}

    def needs(self) -> "Sequence[Model | Update]":
        before = self.before
        return (self.base,) if before is None or before.update is None else (self.base, before.update)


class Recipe(NamedTuple):
    """How a model is made of models, and of weighted updates, which are added in their order."""

    models: "Sequence[Model]"
    end: Callable[[Any], Combined]
    """Gives the numbers, all models having theirs; of what `begin` gives, to which the updates have been added."""
    updates: Sequence[Update] = ()
    weights: Sequence[float] = ()
    begin: Callable[[], Incoming] | None = None
    moved: bool = False
    """Whether models are combined: each update counts from the first of the models."""


class Model:
    """A server's model: how it is made until its numbers are needed, then the numbers."""

    __slots__ = ("__weakref__", "_vector", "digest", "evaluation", "recipe", "server_state", "trainings", "version")

    def __init__(self, digest: str, version: int, recipe: Recipe | None = None, vector: Vector | None = None) -> None:
        self.digest: Final = digest
        self.version: Final = version
        self.recipe, self._vector = recipe, vector
        self.server_state: ServerState | None = None
        self.evaluation: PendingEvaluation | None = None
        self.trainings: int = 0
        """How many updates its longest line of models without numbers is made of."""
        if recipe is not None:
            self.trainings = len(recipe.updates) + max((model.trainings for model in recipe.models), default=0)

    @property
    def known(self) -> bool:
        return self._vector is not None

    @property
    def vector(self) -> Vector:
        """The numbers, shape (d,); they must be known."""
        if self._vector is None:
            raise RuntimeError(f"the numbers of model {self.digest} of version {self.version} are not known yet")
        return self._vector

    @property
    def stale(self) -> bool:
        """Whether it is yet to be made of an update that starts from another model than it."""
        recipe = self.recipe
        return recipe is not None and any(update.base is not recipe.models[0] for update in recipe.updates)

    @property
    def keys(self) -> tuple[int, ...]:
        """As those of an update, as long as it has its recipe."""
        updates = self.recipe.updates if self.recipe is not None else ()
        return self.version, *(key for update in updates for key in update.keys)

    def needs(self) -> "Sequence[Model | Update]":
        return () if self.recipe is None else [*self.recipe.models, *self.recipe.updates]

    def take(self, vector: Vector, server_state: ServerState | None) -> None:
        self._vector, self.server_state, self.recipe, self.trainings = vector, server_state, None, 0


Node = Model | Update


@contextmanager
def naming(
    updates: Sequence[Update] = (), clients: Sequence[int] = (), round_number: int | None = None
) -> Iterator[None]:
    """Name the clients and the round of a part's failure: of trainings the round after the version they start from."""
    try:
        yield
    except PartError as fault:
        if clients or len(updates) == 1:
            fault.at = None
        fault.name_clients(clients or [one.client for one in updates])
        chosen = updates if fault.at is None else updates[fault.at : fault.at + 1]
        rounds = {one.base.version + 1 for one in chosen} if round_number is None else {round_number}
        if fault.round is None and len(rounds) == 1:
            fault.of_round(rounds.pop())
        raise


class Updates:
    """Makes the handles of cohorts; ``behaviour`` is what the user's own steps do."""

    def __init__(
        self, task: str, shards: Sequence[str], steps: Steps, behaviour: str, ratios: Sequence[float], *, keeps: bool
    ) -> None:
        self._task, self._shards, self._steps, self._ratios = task, shards, steps, ratios
        self._behaviour = (behaviour,) if behaviour else ()
        self.states: dict[int, State] = {}
        self._keeps = keeps and not steps.remembers
        self._leaves_state = keeps or steps.remembers
        self._whole: dict[int, bytes] = {}

    def of(
        self,
        base: Model,
        client: IntArray,
        made: Mapping[int, Release],
        work: FloatArray | None,
        repeat: int,
        level: IntArray | None,
        drawn: Drawn | None,
    ) -> list[Update]:
        """Return the updates of a cohort; parameters as of `fedsim.learning.Learner.updates`."""
        clients = client.tolist()
        shares = [1.0] * len(clients) if work is None else np.asarray(work, dtype=np.float64).tolist()
        draws, drew = ([None] * len(clients), "") if drawn is None else (drawn.each(), drawn.named)
        levels = [0] * len(clients) if level is None else level.tolist()
        start = blake2b(f"{self._task} {base.digest} {base.version} {repeat}{drew}".encode(), digest_size=16)
        states, remembers, released = self.states, self._steps.remembers, not self._steps.lossless
        updates: list[Update] = []
        for i, (one, share, width, draw) in enumerate(zip(clients, shares, levels, draws, strict=True)):
            hashed = start.copy()
            hashed.update(self._named(one, share))
            before, release = states.get(one), made.get(i)
            if before is not None:
                hashed.update(before.digest.encode())
            if width:
                hashed.update(f" {self._ratios[width]!r}".encode())
            if remembers:
                # What decides, beside the training, how it changes the memory of its client.
                hashed.update(self._digest("memory", Sender(one, base.version, repeat, release)).encode())
            update = Update(hashed.hexdigest(), base, one, share)
            updates.append(update)
            if repeat or width or draw is not None or before is not None:
                update.repeat, update.level, update.draw, update.before = repeat, width, draw, before
            if self._leaves_state:
                update.state = State(update)
                if remembers:
                    states[one] = update.state
            if released or release is not None:
                update.release = release
                update.digest = self._digest("sent", update.sender, update.work_digest)
        return updates

    def aggregated(self, updates: Sequence[Update]) -> None:
        """Let the clients' next trainings go on from the states that these updates left."""
        if self._keeps:
            for update in updates:
                if update.state is not None:
                    self.states[update.client] = update.state

    def _digest(self, of: str, sender: Sender, *training: str) -> str:
        return digest_of(of, *training, *self._steps.identity(sender), *self._behaviour)

    def _named(self, client: int, share: float) -> bytes:
        """Return the part of an update's digest that depends on its client and its share of the work."""
        if share != 1.0:
            return f"{client} {self._shards[client]} {share!r} ".encode()
        if client not in self._whole:
            self._whole[client] = f"{client} {self._shards[client]} 1.0 ".encode()
        return self._whole[client]
