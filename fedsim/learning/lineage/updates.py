"""What clients would send: updates with their digests, and the states that they go on from."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray, Mask, Vector
from fedsim.learning.contracts import Release
from fedsim.learning.drawn_samples import Drawn
from fedsim.learning.executors.contracts import OptimizerState
from fedsim.learning.lineage.asked import STEPS, Model, State, Update, digest_of
from fedsim.learning.lineage.local_work import LocalWork
from fedsim.learning.steps.contracts import Message, Sender
from fedsim.learning.steps.listed import Steps


class Messages:
    """The messages of one run."""

    def __init__(self, steps: Steps, part: Callable[[Update], Mask | None], behaviour: str = "") -> None:
        self.steps, self.part = steps, part
        self._behaviour = (behaviour,) if behaviour else ()
        self.lossless: Final = steps.lossless
        self.remembers: Final = steps.remembers

    def digest(self, update: Update) -> str:
        return digest_of("sent", update.work_digest, *self.steps.identity(_sender(update)), *self._behaviour)

    def memory_digest(self, sender: Sender) -> str:
        """Return the digest of what decides how a training changes its client's memory, beside the training."""
        return digest_of("memory", *self.steps.identity(sender), *self._behaviour)

    def sent(self, update: Update, difference: Vector) -> tuple[Vector, OptimizerState]:
        """Return what the server receives, shape (d,), and what the client remembers of its message."""
        if self.lossless and update.release is None:
            return difference, {}
        sent = Message(_sender(update), difference, self.part(update), dict(update.memory_of(STEPS)))
        message = self.steps.client(sent)
        return message.numbers, {STEPS + name: values for name, values in message.memory.items()}

    def server_noise(self, updates: Sequence[Update], weights: FloatArray) -> Callable[[], FloatArray] | None:
        """Return what draws what the server adds to an aggregate, shape (d,); None where it adds nothing."""
        if self.lossless and all(one.release is None for one in updates):
            return None
        return self.steps.server([_sender(one) for one in updates], weights)

    def noise_energy(self, update: Update) -> float:
        """Return the expected squared norm of the noise in an update before compression; NaN if it is not stated."""
        return self.steps.noise_energy(update.release, self.part(update))

    def before_noise(self, update: Update, difference: Vector) -> tuple[Vector, bool]:
        """Return an update as the mechanism has clipped it, shape (d,), and whether that changed it.

        Neither what earlier messages left out nor compression is part of it.
        """
        found = self.steps.clipped(difference, update.release)
        return found, found is not difference and not np.array_equal(found, difference)


def _sender(update: Update) -> Sender:
    return Sender(update.client, update.base.version, update.repeat, update.release)


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
