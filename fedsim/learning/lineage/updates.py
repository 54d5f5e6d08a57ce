"""What clients would send: trainings with their digests, and the states that they go on from."""

import weakref
from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning.drawn_samples import Drawn
from fedsim.learning.lineage.digests import CohortDigests
from fedsim.learning.lineage.handles import Cohort, ModelHandle, Outgoing, StateHandle, Training
from fedsim.learning.lineage.local_work import LocalWork
from fedsim.learning.lineage.messages import Messages
from fedsim.learning.model_and_update import Release
from fedsim.learning.steps.contracts import Sender


class Updates:
    def __init__(self, task: str, shards: Sequence[str], messages: Messages, local: LocalWork, *, keeps: bool) -> None:
        self._task, self._shards, self._messages, self._algorithm = task, shards, messages, local
        self.states: dict[int, StateHandle] = {}
        self._keeps = keeps and not messages.remembers
        self._leaves_state = keeps or messages.remembers
        self._adds_up = local.plain and messages.lossless and not self._leaves_state
        self._whole: dict[int, bytes] = {}

    def of(
        self,
        base: ModelHandle,
        client: IntArray,
        made: Mapping[int, Release],
        work: FloatArray | None,
        repeat: int,
        level: IntArray | None,
        drawn: Drawn | None,
    ) -> Sequence[Training]:
        """Return the trainings of a cohort; parameters as of `fedsim.learning.Learner.updates`."""
        clients = client.tolist()
        shares = [1.0] * len(clients) if work is None else np.asarray(work, dtype=np.float64).tolist()
        draws, drew = ([None] * len(clients), "") if drawn is None else (drawn.each(), drawn.named)
        start = blake2b(f"{self._task} {base.digest} {base.version} {repeat}{drew}".encode(), digest_size=16)
        states, messages, remembers = self.states, self._messages, self._messages.remembers
        named = [self._named(one, share) for one, share in zip(clients, shares, strict=True)]
        if self._adds_up and not (made or repeat) and level is None and drawn is None and len({*clients}) == len(named):
            return Cohort(base, clients, shares, CohortDigests(start, named))
        levels = [0] * len(clients) if level is None else level.tolist()
        updates: list[Training] = []
        release = previous = None
        for i, (one, share, name, width, draw) in enumerate(zip(clients, shares, named, levels, draws, strict=True)):
            hashed = start.copy()
            hashed.update(name)
            if states and (previous := states.get(one)) is not None:
                hashed.update(previous.digest.encode())
            if width:
                hashed.update(f" {self._algorithm.algorithm.ratios[width]!r}".encode())
            if made:
                release = made.get(i)
            if remembers:
                hashed.update(messages.memory_digest(Sender(one, base.version, repeat, release)).encode())
            training = Training(hashed.hexdigest(), base, one, share)
            updates.append(training)
            training.repeat, training.previous, training.release = repeat, previous, release
            training.level, training.draw = width, draw
            self._send(training)
        return updates

    def aggregated(self, updates: Sequence[Training]) -> None:
        """Let the clients' next trainings go on from the states that these updates left."""
        if self._keeps:
            for update in updates:
                if update.state is not None:
                    self.states[update.client] = update.state

    def _send(self, training: Training) -> None:
        """Link a training's state to the client's next one, and give its message a digest of its own."""
        if self._leaves_state:
            training.state = StateHandle(training)
            if self._messages.remembers:
                training.outgoing, self.states[training.client] = Outgoing(), training.state
        if not self._messages.lossless or training.release is not None:
            training.digest = self._messages.digest(training)

    def _named(self, client: int, share: float) -> bytes:
        """Return the part of a training's digest that depends on its client and its share of the work."""
        if share != 1.0:
            return f"{client} {self._shards[client]} {share!r} ".encode()
        if client not in self._whole:
            self._whole[client] = f"{client} {self._shards[client]} 1.0 ".encode()
        return self._whole[client]


def bases_of(updates: Sequence[Training]) -> list[ModelHandle]:
    """Return the models that updates start from, each at least once."""
    return [updates.base] if isinstance(updates, Cohort) else [update.base for update in updates]


def digest_of_all(updates: Sequence[Training]) -> str:
    """Return a digest of the messages of all updates, in their order."""
    return updates.digests.whole() if isinstance(updates, Cohort) else "".join([update.digest for update in updates])


def follow(updates: Sequence[Training], model: ModelHandle) -> None:
    """Note that updates have been aggregated into a model."""
    heir = weakref.ref(model)
    for each in [updates] if isinstance(updates, Cohort) and not updates.opened else updates:
        each.heir = heir
