"""Runs about time alone: of what is learned there are sizes, and nothing else."""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.capabilities import FLOPS, MODEL_BITS, SAMPLES
from fedsim.learning.aggregation.combining import Of, check_of
from fedsim.learning.contracts import Learner, Model, Release, Update
from fedsim.learning.drawn_samples import Drawn
from fedsim.learning.evaluation import ClientEvaluations, PendingEvaluation
from fedsim.learning.local_training import probe_samples
from fedsim.learning.server_optimizers.contracts import ServerOptimizer
from fedsim.learning.sizes import ExecutorUsed, Work
from fedsim.measurements import check_needs
from fedsim.per_client import ClientValues, PerClient, values_of
from fedsim.registry import Component
from fedsim.run_setup import RunSetup
from fedsim.units import Bits, FlopsPerSample, Positive


class Version(NamedTuple):
    """A model of which its version is all that is known, or its update."""

    version: int
    is_update: bool = False

    @property
    def digest(self) -> str:
        return f"timing-{self.version}" + "-update" * self.is_update


class TimingLearner:
    """Sizes of a model that is not trained, and its versions; measurements are NaN, zero or empty."""

    remembers: Final = False
    widths: Final = None
    architecture: Final = None
    data_digest: Final = None
    notes: Final[tuple[str, ...]] = ()
    work: Final = Work()

    def __init__(
        self,
        model_bits: float | None,
        samples: IntArray,
        flops_per_sample: float | None = None,
        update_bits: float | None = None,
    ) -> None:
        self.model_bits, self.samples, self.flops_per_sample = model_bits, samples, flops_per_sample
        self.update_bits = model_bits if update_bits is None else update_bits
        self.executor_used: ExecutorUsed | None = None
        self.label_counts: IntArray | None = None

    def work_samples(self, client: IntArray, work: FloatArray | None = None, got: IntArray | None = None) -> FloatArray:
        passed = (self.samples[client] if got is None else got).astype(np.float64)
        return passed if work is None else passed * work

    def whole_steps(self, client: IntArray, work: FloatArray, *, up: bool) -> FloatArray:
        return work

    def probe_samples(self, client: IntArray, samples: int | None) -> FloatArray:
        return probe_samples(self.samples[client], samples)

    def initial(self) -> Model:
        return Version(0)

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
        return [Version(model.version, is_update=True)] * len(client)

    def aggregate(
        self, model: Model, updates: Sequence[Update], weights: FloatArray, *, of: Of = "difference"
    ) -> Model:
        check_of(of)
        return Version(model.version + 1)

    def merge(self, models: Sequence[Model], weights: FloatArray, version: int | None = None) -> Model:
        return Version(max(model.version for model in models) + 1 if version is None else version)

    def trained(self, base: Model, update: Update) -> Model:
        return Version(base.version + 1)

    def server_step(self, model: Model, mean: Model, optimizer: ServerOptimizer | None = None) -> Model:
        return mean

    def with_state_of(self, model: Model, previous: Model) -> Model:
        return model

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


class NoLearning(Component):
    """Learn nothing: for studies of latency, where only times and selections matter.

    Attributes
    ----------
    model_bits : float > 0, optional
        Bits of the model, and of an update, when it is sent; networks that carry bits need it.
    downlink_bits, uplink_bits : floats > 0, optional
        Bits of a model when it is sent, and of an update, where they are not ``model_bits``.
    samples_per_client : int >= 1, optional
        Training samples of each client, one number for all or a value for each (`fedsim.per_client`); devices that
        compute by the sample need it.
    flops_per_sample : float > 0, optional
        Floating-point operations to train on one sample, forward and backward; devices that compute by them need it.

    Examples
    --------
    >>> from fedsim.run_setup import RunSetup
    >>> from fedsim.streams import Streams
    >>> learner = NoLearning(model_bits=1e6, samples_per_client=50).build(RunSetup(3, Streams(0)))
    >>> learner.samples.tolist(), learner.update_bits, learner.start_evaluation(learner.initial())
    ([50, 50, 50], 1000000.0, None)
    >>> sorted(NoLearning(model_bits=1e6).provides)
    ['model-bits']
    """

    model_bits: Positive[Bits] | None = None
    downlink_bits: Positive[Bits] | None = None
    uplink_bits: Positive[Bits] | None = None
    samples_per_client: Annotated[ClientValues, PerClient(ge=1, whole=True)] | None = None
    flops_per_sample: Positive[FlopsPerSample] | None = None

    @property
    def provides(self) -> frozenset[str]:
        """Names of the values that are given; a number of samples that is not given is reported as zero."""
        both = self._downlink_bits if self._uplink_bits is not None else None
        given = {MODEL_BITS: both, SAMPLES: self.samples_per_client, FLOPS: self.flops_per_sample}
        return frozenset(name for name, value in given.items() if value is not None)

    def build(self, run: RunSetup) -> Learner:
        samples = np.zeros(run.clients, dtype=np.int64)
        if self.samples_per_client is not None:
            samples[:] = values_of(self, "samples_per_client", run.clients, run.streams, "learning")
        return TimingLearner(self._downlink_bits, samples, self.flops_per_sample, self._uplink_bits)

    @property
    def _downlink_bits(self) -> float | None:
        return self.model_bits if self.downlink_bits is None else self.downlink_bits

    @property
    def _uplink_bits(self) -> float | None:
        return self.model_bits if self.uplink_bits is None else self.uplink_bits
