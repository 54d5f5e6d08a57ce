"""What leaves a client: its difference after all steps of the list."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, Mask, Vector
from fedsim.learning.executors.contracts import OptimizerState
from fedsim.learning.lineage.asked import STEPS, Update
from fedsim.learning.lineage.digests import digest_of
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
