"""A learner that computes nothing: sizes are those of the scenario's learner, and numbers are reported from outside."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning import Drawn, Evaluation, KnownEvaluation, Model, PendingEvaluation, Release, Update
from fedsim.learning.sizes import Sizes
from fedsim.learning.timing_only import TimingLearner
from fedsim.measurements import check_needs

Key = tuple[int, int, int]
"""A participation: client, version that it started from, and number of its updates from that version before."""
_EMPTY: Final = np.zeros(0, dtype=np.float32)


class OutsideUpdate(NamedTuple):
    key: Key

    @property
    def digest(self) -> str:
        return "outside-{}-{}-{}".format(*self.key)


class ReportedLearner(TimingLearner):
    """Counts versions, and knows of updates and models what is reported."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes.model_bits, sizes.samples, sizes.flops_per_sample, sizes.update_bits)
        self._sizes, self.label_counts = sizes, sizes.label_counts
        self._reported: dict[Key, dict[str, NDArray[Any]]] = {}
        self.evaluation: Evaluation | None = None
        self._size = 0

    def put(self, key: Key, name: str, value: NDArray[Any]) -> None:
        self._reported.setdefault(key, {})[name] = value

    def work_samples(self, client: IntArray, work: FloatArray | None = None, got: IntArray | None = None) -> FloatArray:
        return self._sizes.work_samples(client, work, got)

    def whole_steps(self, client: IntArray, work: FloatArray, *, up: bool) -> FloatArray:
        return self._sizes.whole_steps(client, work, up=up)

    def probe_samples(self, client: IntArray, samples: int | None) -> FloatArray:
        return self._sizes.probe_samples(client, samples)

    def updates(
        self,
        model: Model,
        client: IntArray,
        releases: Mapping[int, Release] | None = None,
        work: FloatArray | None = None,
        repeat: int = 0,
        level: IntArray | None = None,
        drawn: Drawn | None = None,
    ) -> list[Update]:
        return [OutsideUpdate((one, model.version, repeat)) for one in client.tolist()]

    def measure(self, updates: Sequence[Update], needs: Collection[str]) -> dict[str, NDArray[Any]]:
        """Return what was reported of each update; NaN for numbers, and empty vectors, where nothing was."""
        check_needs(needs)
        known = [self._reported.pop(cast(OutsideUpdate, update).key, {}) for update in updates]
        found: dict[str, NDArray[Any]] = {}
        for need in needs:
            if need == "update":
                found[need] = self._vectors([one.get(need, _EMPTY) for one in known])
            else:
                found[need] = np.array([float(one.get(need, np.nan)) for one in known])
        return found

    def start_evaluation(self, model: Model) -> PendingEvaluation | None:
        found, self.evaluation = self.evaluation, None
        return None if found is None else KnownEvaluation(found)

    def _vectors(self, vectors: Sequence[NDArray[Any]]) -> NDArray[np.float32]:
        """Return vectors of one size as rows, NaN where one is missing."""
        self._size = max(self._size, *(vector.size for vector in vectors), 0)
        rows = np.full((len(vectors), self._size), np.nan, dtype=np.float32)
        for row, vector in zip(rows, vectors, strict=True):
            if vector.size:
                row[:] = vector
        return rows
