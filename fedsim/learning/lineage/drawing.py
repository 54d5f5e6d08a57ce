"""Trainings on some of a client's samples."""

import math
from collections.abc import Sequence

import numpy as np

from fedsim.arrays import IntArray
from fedsim.learning.drawn_samples import SampleDraws
from fedsim.learning.executors.contracts import TrainingResult
from fedsim.learning.lineage.handles import LEFT_OUT, Training


def rows_of(trainings: Sequence[Training], rows: Sequence[IntArray], draws: SampleDraws) -> list[IntArray]:
    """Return the samples of each training: its client's, or those that the client has drawn among them."""
    found = [rows[one.client] for one in trainings]
    together: dict[tuple[float, int], list[int]] = {}
    for i, one in enumerate(trainings):
        if one.draw is not None:
            together.setdefault((one.draw.probability, one.draw.number), []).append(i)
    for (probability, number), places in together.items():
        client = np.array([trainings[i].client for i in places])
        for i, drawn in zip(places, draws.places(client, probability, number), strict=True):
            found[i] = found[i][drawn]
    return found


def without_samples(trainings: Sequence[Training]) -> list[Training]:
    return [training for training in trainings if training.draw is not None and not training.draw.taken]


def nothing(training: Training) -> TrainingResult:
    """Return the result of a training without samples, which leaves the client's state as it was."""
    zero = np.zeros_like(training.base.vector)
    zero.flags.writeable = False
    before = {} if training.previous is None else training.previous.value or {}
    kept = {name: values for name, values in before.items() if name != LEFT_OUT}
    return TrainingResult(zero, math.nan, math.nan, kept)


def scaled(training: Training, result: TrainingResult) -> TrainingResult:
    """Return a result with the difference that the client sends."""
    if training.draw is None or training.draw.scale == 1.0:
        return result
    difference = result.difference * np.float32(training.draw.scale)
    difference.flags.writeable = False
    return result._replace(difference=difference)
