"""Evaluation of many models, or of one model on many clients' data, in few passes."""

from collections.abc import Sequence
from typing import Final, cast

import numpy as np

from fedsim.arrays import FloatArray, IntArray, Vector
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.chunks import of_parts
from fedsim.learning.executors.contracts import EvaluationJob
from fedsim.learning.executors.stacked.graph import ModuleOfSlots
from fedsim.learning.executors.stacked.optimizers import rows_of
from fedsim.learning.executors.stacked.recorder import Run
from fedsim.learning.executors.stacked.samples import Samples
from fedsim.learning.tasks.scores import Scores

_SMALLEST: Final = 8
_LARGEST: Final = 64
"""Most samples of a model in one pass."""


class SlotEvaluation:
    """Evaluates as many models at once as there are slots.

    A job's samples are passed in pieces, each filled up to a power of two, so that every pass has one of a few shapes
    and a result depends on its own job alone.
    """

    def __init__(self, module: ModuleOfSlots, samples: Samples, scores: Scores) -> None:
        self._module, self._samples, self._made_of = module, samples, scores
        self._models = rows_of(module.slots, module.count + module.buffers)
        self._pieces = module.pieces(self._models)
        self._runs: dict[int, Run] = {}

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> list[Evaluation]:
        totals, counts = np.zeros((len(jobs), self._made_of.width)), np.zeros(len(jobs), dtype=np.int64)
        each = {
            number: np.zeros((job.rows.size, self._made_of.width))
            for number, job in enumerate(jobs)
            if job.rows is not None and job.parts is not None
        }
        pieces: dict[tuple[bool, int], list[tuple[int, int, IntArray]]] = {}
        for number, job in enumerate(jobs):
            rows = self._samples.test_rows if job.rows is None else job.rows
            of_test = job.rows is None or bool(rows.size and rows[0] < 0)
            rows = ~rows if of_test and job.rows is not None else rows
            counts[number] = rows.size
            for first in range(0, rows.size, _LARGEST):
                part = rows[first : first + _LARGEST]
                width = max(_SMALLEST, 1 << (part.size - 1).bit_length())
                pieces.setdefault((of_test, width), []).append((number, first, part))
        for (of_test, width), asked in pieces.items():
            for first in range(0, len(asked), self._module.slots):
                now = asked[first : first + self._module.slots]
                owners = [number for number, _, _ in now]
                self._load([jobs[number].model for number in owners])
                sums, of_samples = self._score([part for _, _, part in now], width, of_test=of_test)
                np.add.at(totals, owners, sums)
                for (number, place, part), rows in zip(now, of_samples if each else (), strict=False):
                    if number in each:
                        each[number][place : place + part.size] = rows[: part.size]
        found = [self._made_of.evaluation(sums, size) for sums, size in zip(totals, counts.tolist(), strict=True)]
        for number, sums_of_rows in each.items():
            found[number] = of_parts(sums_of_rows, cast(IntArray, jobs[number].parts), self._made_of)
        return found

    def _load(self, models: Sequence[Vector]) -> None:
        """Put models into the first slots; the content of the others does not matter."""
        self._models[: len(models)] = self._samples.sent(np.stack(models))

    def _score(self, parts: Sequence[IntArray], width: int, *, of_test: bool) -> tuple[FloatArray, FloatArray]:
        """Return sums over rows for each of the first slots, shape (n, `Scores.width`), and those of each row.

        The latter have the shape (n, width, `Scores.width`), and 0 beyond the rows of a part.
        """
        rows = np.zeros((self._module.slots, width), dtype=np.int64)
        real = np.zeros((self._module.slots, width), dtype=bool)
        for row, counted, part in zip(rows, real, parts, strict=False):
            row[: part.size], row[part.size :] = part, part[0]
            counted[: part.size] = True
        images, labels = self._samples.batch(rows, of_test=of_test)
        if width not in self._runs:
            self._runs[width] = self._module.scores(self._pieces, images, labels)
        (found,) = self._runs[width](*self._pieces, images, labels)
        if not self._module.is_short:
            each = np.where(real[:, :, None], found.double().numpy(), 0.0)
            return np.asarray(each.sum(axis=1)[: len(parts)]), each[: len(parts)]
        right = (found.argmax(2) == labels).numpy()
        losses = -found.gather(2, labels.unsqueeze(2)).squeeze(2).double().numpy()
        kept, counted = np.where(real, losses, 0.0), right & real
        sums = np.stack([kept.sum(1), counted.sum(1)], axis=1)
        return np.asarray(sums[: len(parts)], dtype=np.float64), np.stack([kept, counted], axis=2)[: len(parts)]
