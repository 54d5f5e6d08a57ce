"""A model as one vector, whatever computes with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray, Mask, Vector
from fedsim.errors import ScenarioError


@dataclass(frozen=True)
class Entry:
    """Where one array of the module's state lies in the vector."""

    name: str
    offset: int
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class ModelLayout:
    """A model in three groups of numbers: p trained parameters and then statistics in one vector, and constants.

    ========== ================================= ==================== ============= ======================
    group      what                              bits                 noise, steps  server
    ========== ================================= ==================== ============= ======================
    trained    parameters that want a gradient   32, or compressed    yes           its optimiser's step
    statistics buffers that training changes     32                   when asked    averaged
    constants  all other numbers                 none                 none          untouched
    ========== ================================= ==================== ============= ======================
    """

    initial: Vector
    parameters: int
    exempt: Mask
    smallest_batch: int
    entries: tuple[Entry, ...] = ()
    constants: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    executed: tuple[str, ...] = ()

    @property
    def layers(self) -> tuple[Entry, ...]:
        places = {name: place for place, name in enumerate(self.executed)}
        return tuple(sorted(self.entries, key=lambda entry: places.get(entry.name, 0)))

    @property
    def tensors(self) -> tuple[int, ...]:
        """Number of parameters of each tensor, in their order; one tensor of all where no entries are given."""
        starts = sorted({entry.offset for entry in self.entries if entry.offset < self.parameters} | {0})
        return tuple(end - start for start, end in zip(starts, [*starts[1:], self.parameters], strict=True))

    def named(self, vector: Vector) -> dict[str, NDArray[Any]]:
        """Return the arrays of a module with the numbers of a model of shape (d,), by their names in the module."""
        named: dict[str, NDArray[Any]] = {}
        for entry in self.entries:
            size = 1
            for length in entry.shape:
                size *= length
            values = vector[entry.offset : entry.offset + size].reshape(entry.shape)
            whole = np.dtype(entry.dtype).kind not in "fc"
            named[entry.name] = np.array(np.rint(values) if whole else values, entry.dtype)  # as where it is loaded
        return named | dict(self.constants)


@dataclass(frozen=True)
class NarrowModel:
    """Sizes and costs of a narrower model, as its own module gives them."""

    ratio: float
    shapes: tuple[tuple[int, ...], ...]
    numbers: int
    parameters: int
    flops: float


@dataclass(frozen=True)
class Widths:
    """The widths of the model among which that of each participation is chosen."""

    ratio: FloatArray
    down_bits: FloatArray
    up_bits: FloatArray
    flops: FloatArray
    given: IntArray | None


def held(layout: ModelLayout, shapes: Sequence[tuple[int, ...]], shift: int = 0) -> BoolArray:
    """Return which numbers of the whole model a narrower one holds, shape (d,).

    The layers stand in a row. The window of a layer of n channels begins at channel ``shift mod n``; the next layer
    takes these channels as its inputs, each with all its pixels where a convolution ends in a dense layer.
    """
    found = np.zeros(layout.initial.size, dtype=np.bool_)
    channels, window = 0, np.arange(0)  # of the layer before; none before the first
    for entry, narrow in zip(layout.entries, shapes, strict=True):
        whole = entry.shape
        kept = [np.arange(length) for length in whole]
        if len(whole) > 1:
            if channels:
                kept[1] = _inputs(whole[1], channels, window)
            channels, window = whole[0], _window(whole[0], narrow[0], shift)
        if whole:
            kept[0] = window
        if tuple(part.size for part in kept) != tuple(narrow):
            raise ScenarioError(
                f"learning.model: {entry.name} of shape {whole} cannot be cut to {narrow}; allowed with sub-models by "
                "width: layers in a row, as of mlp and cnn3"
            )
        place = found[entry.offset : entry.offset + int(np.prod(whole, dtype=np.int64))].reshape(whole)
        place[np.ix_(*kept) if whole else ()] = True
    return found


def _window(channels: int, kept: int, shift: int) -> IntArray:
    return np.asarray((shift + np.arange(kept)) % channels if kept < channels else np.arange(channels), dtype=np.int64)


def _inputs(inputs: int, channels: int, window: IntArray) -> IntArray:
    """Return the inputs of a layer that come from a window of the channels before it."""
    pixels = inputs // channels
    return np.asarray((window[:, None] * pixels + np.arange(pixels)).reshape(-1), dtype=np.int64)
