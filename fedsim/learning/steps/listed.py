"""The list of steps of one run, in their order: part, clip and noise, compress.

The part of the model that a client's message has is said by the local algorithm, and a message is zero elsewhere.
Masks of secure aggregation cancel in a sum, so that they are bits and messages of the rounds (`fedsim.rounds.secure`).
A release is made first, and compressed then: no processing of a private release makes it less private.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from fedsim.arrays import FloatArray, Mask, Vector
from fedsim.learning.compression.compressors import Compressor
from fedsim.learning.model_and_update import Release
from fedsim.learning.models.layout import ModelLayout
from fedsim.learning.steps.compress import Compress
from fedsim.learning.steps.contracts import Message, Sender, UpdateStep
from fedsim.learning.steps.release import ClipAndNoise
from fedsim.streams import Streams
from fedsim.units import BITS_PER_FLOAT32


class Steps:
    """The steps of all updates of a run, in their order."""

    def __init__(self, layout: ModelLayout, streams: Streams, mechanism: Any, compressor: Compressor) -> None:
        self._layout = layout
        self._noise = None if mechanism is None else ClipAndNoise(mechanism, layout, streams)
        noise: tuple[UpdateStep, ...] = () if self._noise is None else (self._noise,)
        self.listed: Final[tuple[UpdateStep, ...]] = (*noise, Compress(compressor, layout, streams))
        self.remembers: Final = any(step.remembers for step in self.listed)
        self.lossless: Final = not any(step.acts_on(None) for step in self.listed)

    @property
    def bits(self) -> float:
        """Bits of a message about the whole model: every step prices the trained numbers; statistics have 32 each."""
        bits = float(BITS_PER_FLOAT32 * self._layout.parameters)
        for step in self.listed:
            bits = step.bits(bits, self._layout.tensors)
        return bits + BITS_PER_FLOAT32 * (self._layout.initial.size - self._layout.parameters)

    def identity(self, sender: Sender) -> tuple[str | bytes | float, ...]:
        """Return all that determines what the steps do with a message, beside the message."""
        found: list[str | bytes | float] = []
        for step in self.listed:
            if step.acts_on(sender.release):
                found += (type(step).__name__, *step.identity(sender))
        return tuple(found)

    def client(self, message: Message) -> Message:
        """Return a message after the clients' halves of all steps that act on it."""
        for step in self.listed:
            if step.acts_on(message.sender.release):
                step.client(message)
        return message

    def server(self, senders: Sequence[Sender], weights: FloatArray) -> Callable[[], FloatArray] | None:
        """Return what draws what the server adds to an aggregate, shape (d,); None where it adds nothing."""
        draws = [draw for step in self.listed if (draw := step.server(senders, weights)) is not None]
        return (lambda: np.sum([draw() for draw in draws], axis=0)) if draws else None

    def noise_energy(self, release: Release | None, part: Mask | None) -> float:
        """Return the expected squared norm of the noise before compression; NaN if it is not stated."""
        return 0.0 if release is None or self._noise is None else self._noise.noise_energy(release, part)

    @property
    def tells_clipping(self) -> bool:
        return self._noise is None or self._noise.tells_clipping

    def clipped(self, update: Vector, release: Release | None) -> Vector:
        """Return an update as the mechanism has clipped it, before noise and compression, shape (d,)."""
        return update if release is None or self._noise is None else self._noise.clipped(update)
