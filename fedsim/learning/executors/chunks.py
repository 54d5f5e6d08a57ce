"""Evaluation in chunks of a fixed size, so that a result depends neither on who shares the chunks nor on other jobs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray, Vector
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.contracts import EvaluationJob
from fedsim.learning.tasks.scores import Scores

# Small enough for a chunk's activations to stay in the cache of one core.
SIZE: Final = 200
"""Samples of a chunk, of which a job's last may have fewer."""


@dataclass(frozen=True)
class Chunk:
    """A model and some of the samples that it is evaluated on.

    Attributes
    ----------
    model : float32 array of shape (d,)
    rows : samples of the training set, shape (n,); None for the test set
    start, stop : which samples of the test set; from 0 to n with rows
    """

    model: Vector
    rows: IntArray | None
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Number of samples."""
        return self.stop - self.start


def evaluated(
    jobs: Sequence[EvaluationJob], test_samples: int, scores: Scores, score: Callable[[Sequence[Chunk]], FloatArray]
) -> list[Evaluation]:
    """Return loss and metrics of each job from the sums over its chunks, which are added in their order.

    Parameters
    ----------
    jobs : n jobs
    test_samples : size of the test set
    scores : makes evaluations of sums
    score : returns the sums of each of m chunks, shape (m, `Scores.width`)
    """
    if not jobs:
        return []
    sizes = [test_samples if job.rows is None else job.rows.size for job in jobs]
    chunks = [chunk for job, size in zip(jobs, sizes, strict=True) for chunk in _chunks(job, size)]
    owner = np.repeat(np.arange(len(jobs)), [-(-size // SIZE) for size in sizes])
    totals = np.zeros((len(jobs), scores.width))
    np.add.at(totals, owner, score(chunks))
    return [scores.evaluation(sums, size) for sums, size in zip(totals, sizes, strict=True)]


def _chunks(job: EvaluationJob, size: int) -> list[Chunk]:
    """Return the chunks of one job of a number of samples."""
    places = [(start, min(start + SIZE, size)) for start in range(0, size, SIZE)]
    if job.rows is None:
        return [Chunk(job.model, None, start, stop) for start, stop in places]
    return [Chunk(job.model, job.rows[start:stop], 0, stop - start) for start, stop in places]
