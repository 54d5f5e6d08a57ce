"""Compress with memory: a compressor as a step of an update."""

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from fedsim.arrays import Vector
from fedsim.identity import identity
from fedsim.learning.contracts import Release
from fedsim.learning.models.layout import ModelLayout
from fedsim.learning.steps.contracts import Message, Sender, UpdateStep
from fedsim.streams import Streams

LEFT_OUT: Final = "left-out"
"""Name of a client's memory of what compression took from its messages, among the arrays of its state."""


class _Compresses(Protocol):
    """A compressor (`fedsim.learning.Compressor`)."""

    @property
    def lossless(self) -> bool: ...

    @property
    def remembers(self) -> bool: ...

    @property
    def same_numbers(self) -> object: ...

    def bits(self, tensors: Sequence[int]) -> float: ...

    def compress(self, update: Vector, tensors: Sequence[int], rng: np.random.Generator) -> Vector: ...


class Compress(UpdateStep):
    """A compressor on the trained numbers, to which a client that remembers adds what was left out before."""

    def __init__(self, compressor: _Compresses, layout: ModelLayout, streams: Streams) -> None:
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
        if self._compressor.lossless:
            return
        sender, parameters = message.sender, self._layout.parameters
        owed = message.numbers.copy()
        if self.remembers and LEFT_OUT in message.memory:
            owed[:parameters] += message.memory[LEFT_OUT]
        rng = self._streams.generator("compression", sender.client, sender.version, sender.repeat)
        shown = owed[:parameters].view()
        shown.flags.writeable = False
        message.numbers = owed.copy()
        message.numbers[:parameters] = self._compressor.compress(shown, self._tensors, rng)
        if self.remembers:
            message.memory = {**message.memory, LEFT_OUT: owed[:parameters] - message.numbers[:parameters]}
