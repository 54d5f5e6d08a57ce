"""What leaves a client: its difference after all steps of the list."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, Mask, Vector
from fedsim.learning.executors.contracts import OptimizerState
from fedsim.learning.lineage.digests import digest_of
from fedsim.learning.lineage.handles import STEPS, Cohort, Training
from fedsim.learning.steps.contracts import Message, Sender
from fedsim.learning.steps.listed import Steps


class Messages:
    """The messages of one run."""

    def __init__(self, steps: Steps, part: Callable[[Training], Mask | None], behaviour: str = "") -> None:
        self.steps, self.part = steps, part
        self._behaviour = (behaviour,) if behaviour else ()
        self.lossless: Final = steps.lossless
        self.remembers: Final = steps.remembers

    def digest(self, training: Training) -> str:
        return digest_of("sent", training.work_digest, *self.steps.identity(_sender(training)), *self._behaviour)

    def memory_digest(self, sender: Sender) -> str:
        """Return the digest of what decides how a training changes its client's memory, beside the training."""
        return digest_of("memory", *self.steps.identity(sender), *self._behaviour)

    def sent(self, training: Training) -> Vector:
        """Return what the server receives, the training having run, shape (d,)."""
        if training.outgoing is not None and training.outgoing.sent is not None:
            return training.outgoing.sent
        difference = _difference(training)
        if self.lossless and training.release is None:
            return difference
        return self._made(training, difference).numbers

    def settle(self, training: Training, difference: Vector) -> OptimizerState:
        """Make the message of a client that remembers something of it; return its memory after that, by name."""
        if training.outgoing is None:
            return {}
        message = self._made(training, difference)
        training.outgoing.sent = message.numbers
        return {STEPS + name: values for name, values in message.memory.items()}

    def server_noise(self, updates: Sequence[Training], weights: FloatArray) -> Callable[[], FloatArray] | None:
        """Return what draws what the server adds to an aggregate, shape (d,); None where it adds nothing."""
        if isinstance(updates, Cohort):  # none of them is a release
            return None
        return self.steps.server([_sender(one) for one in updates], weights)

    def noise_energy(self, update: Training) -> float:
        """Return the expected squared norm of the noise in an update before compression; NaN if it is not stated."""
        return self.steps.noise_energy(update.release, self.part(update))

    def before_noise(self, update: Training) -> tuple[Vector, bool]:
        """Return an update as the mechanism has clipped it, shape (d,), and whether that changed it.

        The training must have run. Neither what earlier messages left out nor compression is part of it.
        """
        difference = _difference(update)
        found = self.steps.clipped(difference, update.release)
        return found, found is not difference and not np.array_equal(found, difference)

    def _made(self, training: Training, difference: Vector) -> Message:
        memory = training.step_memory
        return self.steps.client(Message(_sender(training), difference, self.part(training), memory))


def _sender(training: Training) -> Sender:
    return Sender(training.client, training.base.version, training.repeat, training.release)


def _difference(training: Training) -> Vector:
    if training.difference is None:
        raise RuntimeError(f"the difference of training {training.work_digest} is not in memory")
    return training.difference
