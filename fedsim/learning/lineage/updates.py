"""What clients would send: updates with their digests, and the states that they go on from."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning.drawn_samples import Drawn
from fedsim.learning.lineage.asked import Model, State, Update
from fedsim.learning.lineage.local_work import LocalWork
from fedsim.learning.lineage.messages import Messages
from fedsim.learning.model_and_update import Release
from fedsim.learning.steps.contracts import Sender


class Updates:
    def __init__(self, task: str, shards: Sequence[str], messages: Messages, local: LocalWork, *, keeps: bool) -> None:
        self._task, self._shards, self._messages, self._algorithm = task, shards, messages, local
        self.states: dict[int, State] = {}
        self._keeps = keeps and not messages.remembers
        self._leaves_state = keeps or messages.remembers
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
        states, remembers, released = self.states, self._messages.remembers, not self._messages.lossless
        updates: list[Update] = []
        for i, (one, share, width, draw) in enumerate(zip(clients, shares, levels, draws, strict=True)):
            hashed = start.copy()
            hashed.update(self._named(one, share))
            before, release = states.get(one), made.get(i)
            if before is not None:
                hashed.update(before.digest.encode())
            if width:
                hashed.update(f" {self._algorithm.algorithm.ratios[width]!r}".encode())
            if remembers:
                sender = Sender(one, base.version, repeat, release)
                hashed.update(self._messages.memory_digest(sender).encode())
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
                update.digest = self._messages.digest(update)
        return updates

    def aggregated(self, updates: Sequence[Update]) -> None:
        """Let the clients' next trainings go on from the states that these updates left."""
        if self._keeps:
            for update in updates:
                if update.state is not None:
                    self.states[update.client] = update.state

    def _named(self, client: int, share: float) -> bytes:
        """Return the part of an update's digest that depends on its client and its share of the work."""
        if share != 1.0:
            return f"{client} {self._shards[client]} {share!r} ".encode()
        if client not in self._whole:
            self._whole[client] = f"{client} {self._shards[client]} 1.0 ".encode()
        return self._whole[client]
