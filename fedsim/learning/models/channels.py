"""Which numbers of a model a narrower one holds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.errors import ScenarioError
from fedsim.learning.models.layout import ModelLayout


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
