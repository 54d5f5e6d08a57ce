"""Evaluation in chunks of a fixed size, so that a result does not depend on how chunks are shared among threads."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from fedsim.arrays import FloatArray, IntArray, Vector
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.contracts import EvaluationJob, TrainingSetup
from fedsim.learning.tasks.scores import Scores

# Small enough for a chunk's activations to stay in the cache of one core.
SIZE: Final = 200
"""Samples of a chunk; a job's last one may have fewer."""


class Chunk(NamedTuple):
    """A model and some of its samples."""

    base: Vector
    rows: IntArray | None
    start: int
    stop: int
    each: bool = False


def evaluated(
    jobs: Sequence[EvaluationJob],
    setup: TrainingSetup,
    score: Callable[[Sequence[Chunk]], Sequence[FloatArray]],
) -> list[Evaluation]:
    """Return loss and metrics of each job from the sums over its chunks, added in their order."""
    if not jobs:
        return []
    scores = setup.scores
    sizes = [len(setup.data.test_y) if job.rows is None else job.rows.size for job in jobs]
    chunks = [chunk for job, size in zip(jobs, sizes, strict=True) for chunk in _chunks(job, size)]
    sums, found = iter(score(chunks)), []
    for job, size in zip(jobs, sizes, strict=True):
        own = [next(sums) for _ in range(0, size, SIZE)]
        if job.parts is None:
            found.append(scores.evaluation(added(own, scores.width), size))
        else:
            found.append(of_parts(np.concatenate(own), job.parts, scores))
    return found


def added(rows: Iterable[FloatArray], width: int) -> FloatArray:
    total = np.zeros(width)
    for row in rows:
        total += row
    return total


def of_parts(each: FloatArray, parts: IntArray, scores: Scores) -> Evaluation:
    sums = np.add.reduceat(each, np.cumsum(parts) - parts, axis=0)
    of_each = [scores.evaluation(one, size) for one, size in zip(sums, parts.tolist(), strict=True)]
    return replace(scores.evaluation(added(sums, scores.width), len(each)), parts=tuple(of_each))


def _chunks(job: EvaluationJob, size: int) -> list[Chunk]:
    found = [Chunk(job.model, None, start, min(start + SIZE, size)) for start in range(0, size, SIZE)]
    if (rows := job.rows) is None:
        return found
    each = job.parts is not None
    return [Chunk(job.model, rows[one.start : one.stop], 0, one.stop - one.start, each) for one in found]
