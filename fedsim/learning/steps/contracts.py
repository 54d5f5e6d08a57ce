"""One step of an update: a client's half and a server's half, each of which may do nothing.

A step works on trained numbers. Statistics are in the message as they are, unless the step says so; constants of the
module are in no message.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fedsim.arrays import FloatArray, Mask, Vector
from fedsim.learning.executors.contracts import OptimizerState
from fedsim.learning.model_and_update import Release


@dataclass(frozen=True)
class Sender:
    """Whose message it is, of which of its trainings, and how it is made private."""

    client: int
    version: int
    repeat: int
    release: Release | None


@dataclass
class Message:
    """What one client sends, on its way through the steps: numbers of shape (d,), of which ``part`` counts."""

    sender: Sender
    numbers: Vector
    part: Mask | None = None
    memory: OptimizerState = field(default_factory=dict)


class UpdateStep:
    """A step of the list; derive from it, and write what differs from doing nothing."""

    @property
    def remembers(self) -> bool:
        """Whether the client keeps something of its message for its next one."""
        return False

    def acts_on(self, release: Release | None) -> bool:
        """Return whether it changes a message."""
        return True

    def identity(self, sender: Sender) -> Sequence[str | bytes | float]:
        """Return all that determines what it does with a message, beside the message."""
        return ()

    def bits(self, bits: float, tensors: Sequence[int]) -> float:
        """Return the bits of the trained numbers after it, from those before it and the sizes of all arrays."""
        return bits

    def client(self, message: Message) -> None:
        """Change a message; replace in its memory what is this step's own."""

    def server(self, senders: Sequence[Sender], weights: FloatArray) -> Callable[[], FloatArray] | None:
        """Return what draws what the server adds to the sum of messages, shape (d,); None for nothing."""
        return None
