"""The list of steps of one run, from the parts of its scenario, in their order.

A release is made first, and compressed last: no processing of a private release makes it less private. The part of the
model that a client's message has is said by the local algorithm, and a message is zero elsewhere. Masks of secure
aggregation cancel in a sum, so that they are bits and messages of the rounds (`fedsim.rounds.secure`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from fedsim.answers import Contract, PartOf, Several, unchecked
from fedsim.arrays import BoolArray, FloatArray, Mask, Vector
from fedsim.code_digest import is_builtin
from fedsim.identity import identity
from fedsim.learning.contracts import Release
from fedsim.learning.models.layout import ModelLayout
from fedsim.learning.steps.contracts import UPDATE_STEP, Message, Sender, StepRun, UpdateStep
from fedsim.units import BITS_PER_FLOAT32

_OTHERS: Final = "others"
_ORDER: Final = "privacy", _OTHERS, "learning.compression"


class BringsSteps(Protocol):
    """A part of a scenario that may bring steps."""

    def update_steps(self, run: Any) -> Sequence[Any]:
        """Return the steps that the part brings."""


BRINGS_STEPS: Final = Contract(
    "any part with steps", BringsSteps, {"update_steps": Several(PartOf(UpdateStep, UPDATE_STEP))}
)


class Steps:
    """The steps of all updates of a run, in their order."""

    def __init__(self, parts: Mapping[str, BringsSteps], run: StepRun) -> None:
        self._layout: ModelLayout = run.layout
        found: dict[str, list[tuple[BringsSteps, UpdateStep]]] = {place: [] for place in _ORDER}
        for path, part in parts.items():
            steps = BRINGS_STEPS.checked(part).update_steps(run)
            found[path if path in _ORDER else _OTHERS] += [(part, step) for step in steps]
        pairs = [pair for place in _ORDER for pair in found[place]]
        self.listed: Final = tuple(step for _, step in pairs)
        self._names = [_name(part, step) for part, step in pairs]
        self.remembers: Final = any(step.remembers for step in self.listed)
        self.lossless: Final = not any(step.acts_on(None) for step in self.listed)
        self.releases: Final = any(step.releases for step in self.listed)
        self.tells_clipping: Final = all(step.tells_clipping for step in self.listed)

    def bits(self, part: BoolArray | None = None) -> float:
        """Return the bits of a message about a part of the model, shape (d,), or all of it.

        Every step prices the trained numbers; statistics have 32 bits each.
        """
        layout, tensors = self._layout, self._layout.tensors
        statistics = layout.initial.size - layout.parameters
        if part is not None:
            ends = np.cumsum(tensors)
            held = [int(np.count_nonzero(part[end - size : end])) for size, end in zip(tensors, ends, strict=True)]
            tensors = tuple(count for count in held if count)
            statistics = int(np.count_nonzero(part[layout.parameters :]))
        bits = float(BITS_PER_FLOAT32 * sum(tensors))
        for step in self.listed:
            bits = step.bits(bits, tensors)
        return bits + BITS_PER_FLOAT32 * statistics

    def identity(self, sender: Sender) -> tuple[str | bytes | float, ...]:
        found: list[str | bytes | float] = []
        for name, step in zip(self._names, self.listed, strict=True):
            if step.acts_on(sender.release):
                found += (name, *step.identity(sender))
        return tuple(found)

    def client(self, message: Message) -> Message:
        for step in self.listed:
            if step.acts_on(message.sender.release):
                step.client(message)
        return message

    def server(self, senders: Sequence[Sender], weights: FloatArray) -> Callable[[], FloatArray] | None:
        draws = [draw for step in self.listed if (draw := step.server(senders, weights)) is not None]
        return (lambda: np.sum([draw() for draw in draws], axis=0)) if draws else None

    def noise_energy(self, release: Release | None, part: Mask | None) -> float:
        if release is None:
            return 0.0
        return sum((step.noise_energy(release, part) for step in self.listed if step.releases), 0.0)

    def clipped(self, update: Vector, release: Release | None) -> Vector:
        """Return an update as its release has bounded it, before noise and compression, shape (d,)."""
        for step in self.listed:
            if step.releases and release is not None:
                update = step.clipped(update)
        return update


def _name(part: BringsSteps, step: UpdateStep) -> str:
    """Return what stands for a step in digests: the class of one of fedsim, and the whole part of one's own."""
    kind = type(unchecked(step))
    return kind.__name__ if is_builtin(kind) else identity(part)
