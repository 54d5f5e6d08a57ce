"""Models and updates without numbers: versions are counted, measurements are NaN, zero or empty."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning.aggregation.combining import Of, check_of
from fedsim.learning.computing import Work
from fedsim.learning.drawn_samples import Drawn
from fedsim.learning.evaluation import ClientEvaluations, PendingEvaluation
from fedsim.learning.model_and_update import Model, Release, Update
from fedsim.learning.server_optimizers.contracts import ServerOptimizer
from fedsim.measurements import check_needs


class Version(NamedTuple):
    digest: str
    version: int


class UpdateOfVersion(NamedTuple):
    digest: str


class Versions:
    """The lineage of a model of which versions are all that is known."""

    def initial(self) -> Model:
        return Version("timing-0", 0)

    def updates(
        self,
        model: Model,
        client: IntArray,
        releases: Mapping[int, Release] | None = None,
        work: FloatArray | None = None,
        repeat: int = 0,
        level: IntArray | None = None,
        drawn: Drawn | None = None,
    ) -> Sequence[Update]:
        """Return one handle n times, so that a cohort costs nothing per client."""
        return [UpdateOfVersion(f"{model.digest}-update")] * len(client)

    def aggregate(
        self, model: Model, updates: Sequence[Update], weights: FloatArray, *, of: Of = "difference"
    ) -> Model:
        check_of(of)
        return _version(model.version + 1)

    def merge(self, models: Sequence[Model], weights: FloatArray, version: int | None = None) -> Model:
        return _version(max(model.version for model in models) + 1 if version is None else version)

    def trained(self, base: Model, update: Update) -> Model:
        return _version(base.version + 1)

    def server_step(self, model: Model, mean: Model, optimizer: ServerOptimizer | None = None) -> Model:
        return mean

    def with_state_of(self, model: Model, previous: Model) -> Model:
        return model


class NoNumbers:
    """What is asked of models and updates that have no numbers."""

    @property
    def work(self) -> Work:
        return Work()

    def measure(self, updates: Sequence[Update], needs: Collection[str]) -> dict[str, NDArray[Any]]:
        check_needs(needs)
        empty = np.empty((len(updates), 0), dtype=np.float32)
        return {need: empty if need == "update" else np.full(len(updates), np.nan) for need in needs}

    def deviations(
        self, fresh: Sequence[Update], fresh_weights: FloatArray | None, stale: Sequence[Update]
    ) -> FloatArray:
        return np.zeros(len(stale))

    def probe_losses(self, model: Model, client: IntArray, samples: int | None, round_: int) -> FloatArray:
        return np.full(len(client), np.nan)

    def start_evaluation(self, model: Model) -> PendingEvaluation | None:
        return None

    def evaluate_clients(self, model: Model) -> ClientEvaluations | None:
        return None

    def flush(self) -> None:
        return

    def export(self, model: Model) -> Mapping[str, NDArray[Any]] | None:
        return None


def _version(version: int) -> Version:
    return Version(f"timing-{version}", version)
