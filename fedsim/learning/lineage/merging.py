"""Updates of which nothing but a weighted sum is read: it is worked out without them, where the executor can."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from fedsim.answers import in_words, unchecked
from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import PartError
from fedsim.learning.drawn_samples import SampleDraws
from fedsim.learning.executors.contracts import EXECUTOR, MergedJob, Merging
from fedsim.learning.lineage.computation import Computation
from fedsim.learning.lineage.drawing import rows_of
from fedsim.learning.lineage.faults import named_faults
from fedsim.learning.lineage.handles import ModelHandle, Training
from fedsim.learning.lineage.local_work import LocalWork
from fedsim.learning.local_training import LocalTraining
from fedsim.streams import Streams


class MergedUpdates:
    """Which updates of an aggregation are merged, and what they add up to.

    That depends on the aggregation alone, and not on what is in memory or in the store: merged are all updates of
    clients that start from the server's model, do one step on all their samples and send it as it is. Local algorithms
    with a state or a schedule, and compression, are not asked about here: with them there is no object of this class.
    """

    def __init__(
        self,
        results: Computation,
        executor: Merging,
        rows: Sequence[IntArray],
        streams: Streams,
        local: LocalTraining,
    ) -> None:
        self._results, self._executor, self._rows, self._local = results, executor, rows, local
        self._samples = np.array([part.size for part in rows], dtype=np.int64)
        self._draws, self._generators = SampleDraws(streams, self._samples), streams.pool("training")

    @classmethod
    def of(
        cls,
        results: Computation,
        rows: Sequence[IntArray],
        streams: Streams,
        local: LocalTraining,
        work: LocalWork,
    ) -> Self | None:
        """Return what merges the updates of a run, or None where its executor or its messages do not allow that."""
        executor = unchecked(results.runs.executor)
        if not (isinstance(executor, Merging) and work.plain and results.messages.lossless):
            return None
        return cls(results, executor, rows, streams, local)

    def places(self, current: ModelHandle, updates: Sequence[Training]) -> list[int]:
        """Return the positions of the updates that are merged, ascending."""
        if not (updates and self._executor.merges):
            return []
        got = [self._samples[one.client] if one.draw is None else one.draw.taken for one in updates]
        single = self._local.single_steps(got, [one.work for one in updates], self._results.layout.smallest_batch)
        return [
            place
            for place in np.flatnonzero(single).tolist()
            if updates[place].base is current and updates[place].previous is None and updates[place].release is None
        ]

    def sum_of(self, trainings: Sequence[Training], weights: Sequence[float]) -> FloatArray:
        """Return the weighted sum of trainings of one base, which has its numbers, shape (d,)."""
        base = trainings[0].base
        scales = [1.0 if one.draw is None else one.draw.scale for one in trainings]
        keys = [
            (one.client, base.version, one.repeat) if one.repeat else (one.client, base.version) for one in trainings
        ]
        rows = rows_of(trainings, self._rows, self._draws)
        job = MergedJob(base.vector, rows, np.array(weights) * scales, lambda: self._generators.generators(keys))
        with named_faults(trainings):
            found: object = self._executor.train_sum(job)
        if not isinstance(found, np.ndarray) or found.dtype.kind != "f" or found.shape != base.vector.shape:
            name = EXECUTOR.name_of(self._executor)
            allowed = f"allowed: floating-point numbers of shape {base.vector.shape}"
            raise PartError(f"{name}.train_sum returned {in_words(found)}", allowed)
        self._results.runs.trained += len(trainings)
        return found
