"""One step of an update: a client's half and a server's half, each of which may do nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from fedsim.answers import AnswerError, Contract, Flag, Free, Given, InstanceOf, Number, OptionalOf, in_words
from fedsim.arrays import FloatArray, Mask, Vector
from fedsim.learning.contracts import Release
from fedsim.learning.executors.contracts import OptimizerState
from fedsim.learning.models.layout import ModelLayout
from fedsim.run_setup import RunSetup


@dataclass(frozen=True, eq=False, kw_only=True)
class StepRun(RunSetup):
    """The argument ``run`` of ``update_steps(run)``.

    Attributes
    ----------
    layout : which numbers of a message are trained ones, and the sizes of their arrays
    """

    layout: ModelLayout


@dataclass(frozen=True)
class Sender:
    """Whose message it is, of which of its trainings, and how it is made private.

    Attributes
    ----------
    client, version : id, and version of the model from which it has trained
    repeat : how often it has trained from the same model before
    release : number and epsilon of a private release; None for an update in clear
    """

    client: int
    version: int
    repeat: int
    release: Release | None


@dataclass
class Message:
    """What one client sends, on its way through the steps.

    Attributes
    ----------
    sender : whose it is
    numbers : trained numbers and then statistics, float32, shape (d,); a step replaces them
    part : which of them count, shape (d,); None for all
    memory : what the client keeps of its messages, by name; a step replaces its own
    """

    sender: Sender
    numbers: Vector
    part: Mask | None = None
    memory: OptimizerState = field(default_factory=dict)


class UpdateStep:
    """A step of all updates of a run; derive from it, and write what differs from doing nothing.

    A step works on trained numbers. Statistics are in the message as they are, unless the step says so; constants of
    the module are in no message.

    Attributes
    ----------
    releases : whether it makes an update a private release

    Examples
    --------
    >>> class Signs(UpdateStep):
    ...     def bits(self, bits, tensors):
    ...         return float(sum(tensors))
    ...     def client(self, message):
    ...         message.numbers = np.sign(message.numbers)
    >>> Signs().bits(3200.0, [60, 40])
    100.0
    """

    releases: bool = False

    @property
    def made_of(self) -> object:
        """The part whose code decides what the step does: the step itself by default."""
        return self

    @property
    def remembers(self) -> bool:
        """Whether the client keeps something of its message for its next one."""
        return False

    @property
    def note(self) -> str:
        """What a user of the step should know, in a sentence; empty for nothing."""
        return ""

    @property
    def tells_clipping(self) -> bool:
        """Whether `clipped` is all that the step does beside adding noise."""
        return True

    def acts_on(self, release: Release | None) -> bool:
        """Return whether it changes a message.

        Parameters
        ----------
        release : of the message; None in clear
        """
        return True

    def identity(self, sender: Sender) -> Sequence[str | bytes | float]:
        """Return all that determines what it does with a message, beside the message and the step's own code.

        Parameters
        ----------
        sender : of the message
        """
        return ()

    def bits(self, bits: float, tensors: Sequence[int]) -> float:
        """Return the bits of the trained numbers after the step.

        Parameters
        ----------
        bits : before it
        tensors : sizes of the arrays of trained numbers
        """
        return bits

    def client(self, message: Message) -> None:
        """Change a message; replace in its memory what is this step's own.

        Parameters
        ----------
        message : as the steps before have left it
        """

    def server(self, senders: Sequence[Sender], weights: FloatArray) -> Callable[[], FloatArray] | None:
        """Return what draws what the server adds to the sum of messages, shape (d,); None for nothing.

        Parameters
        ----------
        senders, weights : of the messages
        """
        return None

    def noise_energy(self, release: Release, part: Mask | None) -> float:
        """Return the expected squared norm of the noise in trained numbers; NaN if it is not stated.

        Parameters
        ----------
        release, part : of the message
        """
        return 0.0

    def clipped(self, update: Vector) -> Vector:
        """Return an update of shape (d,) as the step has bounded it before it adds noise.

        Parameters
        ----------
        update : before the step
        """
        return update


def _still_a_message(_: object, given: Given) -> None:
    """Check that the numbers of the message are a vector of the model's length."""
    found, size = given["message"].numbers, given["run"].layout.initial.size
    if not isinstance(found, np.ndarray) or found.shape != (size,) or found.dtype != np.float32:
        raise AnswerError(f"a message with {in_words(found)}", f"an array of float32 of shape ({size},)")


UPDATE_STEP: Final[Contract] = Contract(
    "update step",
    UpdateStep,
    {
        "releases": Flag(),
        "remembers": Flag(),
        "tells_clipping": Flag(),
        "note": InstanceOf(str),
        "acts_on": Flag(),
        "identity": Free(),
        "bits": Number(least=0),
        "client": _still_a_message,
        "server": OptionalOf(Free()),
        "noise_energy": Free(),
        "clipped": Free(),
    },
)
