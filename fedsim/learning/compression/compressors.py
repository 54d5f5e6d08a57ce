"""The contract of a compressor: the bits of the message, and what the server reads out of it.

The size of a message depends on the sizes of the model's tensors alone, never on the numbers, so that simulated times
are known without any training. A compressor works on parameters; buffers of batch normalisation are sent whole.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from fedsim.answers import Contract, Flag, Free, Number, Numbers, same_shape
from fedsim.arrays import Vector, read_only
from fedsim.identity import identity
from fedsim.learning.contracts import Release
from fedsim.learning.models.layout import ModelLayout
from fedsim.learning.steps.contracts import Message, Sender, StepRun, UpdateStep
from fedsim.registry import Component, Registry
from fedsim.streams import Streams
from fedsim.units import BITS_PER_FLOAT32

LEFT_OUT: Final = "left-out"
"""Name of a client's memory of what compression took from its messages, among the arrays of its state."""


class Compressor(Component, ABC):
    """How clients compress their updates; derive from it, add options as fields, and write `bits` and `compress`.

    Attributes
    ----------
    lossless : bool
        Whether the server reads the very update out of the message. Then `compress` is not called, and compression
        changes times and bits alone.

    Examples
    --------
    >>> class Halves(Compressor):
    ...     def bits(self, tensors):
    ...         return 16.0 * sum(tensors)
    ...     def compress(self, update, tensors, rng):
    ...         return update.astype(np.float16).astype(np.float32)
    >>> update = np.array([0.1, 1.0], dtype=np.float32)
    >>> Halves().compress(update, [2], np.random.default_rng(0)).tolist(), Halves().bits([2])
    ([0.0999755859375, 1.0], 32.0)
    """

    lossless: ClassVar[bool] = False

    @property
    def remembers(self) -> bool:
        """Whether each client keeps what compression took from its updates, and adds it to its next one.

        This is error feedback (Karimireddy, Rebjock, Stich and Jaggi, "Error feedback fixes SignSGD and other gradient
        compression schemes", ICML 2019). The learner keeps the memory; `compress` is given the sum.
        """
        return False

    @property
    def same_numbers(self) -> "Compressor":
        """A compressor of the same messages that differs at most in their bits, which stands for it in digests."""
        return self

    def update_steps(self, run: StepRun) -> Sequence[UpdateStep]:
        """Return the step that compresses.

        Parameters
        ----------
        run : what a part may read of its run
        """
        return [Compress(COMPRESSOR.checked(self), run.layout, run.streams)]

    @abstractmethod
    def bits(self, tensors: Sequence[int]) -> float:
        """Return the bits of a message.

        Parameters
        ----------
        tensors : number of parameters of each tensor of the model
        """

    @abstractmethod
    def compress(self, update: Vector, tensors: Sequence[int], rng: np.random.Generator) -> Vector:
        """Return what the server reads out of the message, float32, shape (p,), from these arguments alone.

        Parameters
        ----------
        update : float32 array of shape (p,), read-only
            Changes of all parameters, one tensor after the other; with `remembers`, and what earlier messages left out.
            Numbers may be infinite or NaN if a training has diverged.
        tensors : number of parameters of each tensor, of sum p
        rng : random generator of this message
        """


COMPRESSOR: Final = Contract(
    "compressor",
    Compressor,
    {
        "lossless": Flag(),
        "remembers": Flag(),
        "same_numbers": Free(),
        "bits": Number(least=0),
        "compress": Numbers(same_shape("update"), least=-math.inf, infinite=True, nan=True, dtype=np.float32),
    },
)


class Compress(UpdateStep):
    """A compressor on the trained numbers, to which a client that remembers adds what was left out before."""

    def __init__(self, compressor: Compressor, layout: ModelLayout, streams: Streams) -> None:
        self._compressor, self._layout, self._streams = compressor, layout, streams
        self._tensors, self._identity = layout.tensors, identity(compressor.same_numbers)

    @property
    def made_of(self) -> object:
        return self._compressor

    @property
    def remembers(self) -> bool:
        return not self._compressor.lossless and self._compressor.remembers

    def acts_on(self, release: Release | None) -> bool:
        return not self._compressor.lossless

    def identity(self, sender: Sender) -> Sequence[str | bytes | float]:
        draws = self._streams.digest("compression", sender.client, sender.version, sender.repeat)
        return self._identity, draws

    def bits(self, bits: float, tensors: Sequence[int]) -> float:
        return float(self._compressor.bits(tensors))

    def client(self, message: Message) -> None:
        sender, parameters = message.sender, self._layout.parameters
        owed = message.numbers.copy()
        if self.remembers and LEFT_OUT in message.memory:
            owed[:parameters] += message.memory[LEFT_OUT]
        rng = self._streams.generator("compression", sender.client, sender.version, sender.repeat)
        message.numbers = owed.copy()
        message.numbers[:parameters] = self._compressor.compress(read_only(owed[:parameters]), self._tensors, rng)
        if self.remembers:
            message.memory = {**message.memory, LEFT_OUT: owed[:parameters] - message.numbers[:parameters]}


class NoCompression(Compressor):
    """Send every number with its 32 bits.

    Examples
    --------
    >>> NoCompression().bits([100, 10])  # 32 bits for each number
    3520.0
    """

    lossless: ClassVar[bool] = True

    def update_steps(self, run: StepRun) -> Sequence[UpdateStep]:
        return ()

    def bits(self, tensors: Sequence[int]) -> float:
        return float(BITS_PER_FLOAT32 * sum(tensors))

    def compress(self, update: Vector, tensors: Sequence[int], rng: np.random.Generator) -> Vector:
        return update


COMPRESSORS: Final = Registry(
    "compressor",
    "fedsim.compressors",
    ("bits", "compress"),
    {
        "none": "fedsim.learning.compression.compressors:NoCompression",
        "qsgd": "fedsim.learning.compression.quantization:QSGD",
        "top-k": "fedsim.learning.compression.sparsification:TopK",
        "random-k": "fedsim.learning.compression.sparsification:RandomK",
    },
    default="none",
)
