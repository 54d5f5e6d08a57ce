"""Durations of local training.

Streams: ``compute-speed`` and ``compute-spread`` by client; ``compute-jitter`` and ``compute-load`` by (client, draw);
``trace-capacity`` by client, for a random mapping of clients to the entries of a file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal, Self

import numpy as np
from pydantic import Field, NonNegativeFloat, model_validator

from fedsim.arrays import FloatArray, IntArray, constant, normal_quantile
from fedsim.capabilities import FLOPS, SAMPLES
from fedsim.devices.heterogeneity import (
    HETEROGENEITY_LAW,
    HETEROGENEITY_LAWS,
    Fixed,
    HeterogeneityLaw,
    LogNormal,
    mean_slowdown,
    slowdown,
)
from fedsim.errors import ScenarioError
from fedsim.inputs.paths import InputPath
from fedsim.per_client import ClientValues, PerClient, Values, at, one_number, values_of
from fedsim.registry import Component, Registry, Slot
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.traces import Mapped, capacity_of
from fedsim.units import FLOPS_PER_SECOND, SAMPLES_PER_SECOND, Bound

COMPUTE_TIMES = Registry(
    "compute time",
    "fedsim.compute_times",
    ("build",),
    {
        "rate": "fedsim.devices.compute:Rate",
        "flops": "fedsim.devices.compute:Flops",
        "fedscale": "fedsim.devices.compute:FedScale",
        "zero": "fedsim.devices.compute:ZeroCompute",
    },
    attributes=("requires",),
)

Sigma = Annotated[float, Field(ge=0, le=10)]
Load = Annotated[ClientValues, PerClient(ge=0, lt=0.5)]
_HERE: Final = "devices.compute"
_FORWARD_AND_BACKWARD: Final = 3.0
_PHONES: Final = ((0.282, 78.3, 0.26), (0.537, 193.0, 0.441), (0.118, 439.1, 0.194), (0.063, 760.9, 0.985))
"""Classes of phones: share, median in ms, and standard deviation of the logarithm."""
_LEAST_LEVEL: Final = 1e-9


class Rate(Component):
    """A speed in samples per second that each client keeps, and a jitter that differs from draw to draw.

    Client k has the speed ``samples_per_s * exp(spread_sigma * Z_k)``, drawn once; its work takes
    ``samples / speed`` times a log-normal jitter with mean 1, drawn for each participation.

    Attributes
    ----------
    samples_per_s : median speed over the clients, in samples passed forward and backward; or a value for each client
    spread_sigma : standard deviation of the logarithm of the clients' speeds
        0.5 by default, and 0 where `samples_per_s` gives each client its own.
    jitter_sigma : standard deviation of the logarithm of the jitter

    Examples
    --------
    >>> from fedsim.run_setup import RunSetup
    >>> from fedsim.streams import Streams
    >>> times = Rate(samples_per_s=[100.0, 50.0], jitter_sigma=0.0).build(RunSetup(2, Streams(0)))
    >>> times.duration_s(np.array([1, 0]), draw=1, samples=np.array([200.0, 200.0])).tolist()
    [4.0, 2.0]
    """

    requires: ClassVar[frozenset[str]] = frozenset({SAMPLES})

    samples_per_s: Annotated[ClientValues, PerClient(gt=0), SAMPLES_PER_SECOND]
    spread_sigma: Sigma = 0.5
    jitter_sigma: Sigma = 0.1

    @classmethod
    def _completed(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        return _without_spread(options, "samples_per_s", {"spread_sigma": 0.0})

    def build(self, run: RunSetup) -> "RateTimes":
        z = normal_quantile(run.streams.uniform("compute-speed", np.arange(run.clients)))
        speed = values_of(self, "samples_per_s", run.clients, run.streams, _HERE) * np.exp(self.spread_sigma * z)
        return RateTimes(speed, self.jitter_sigma, run.streams)


@dataclass(frozen=True)
class RateTimes:
    """The compute times of a `Rate` law; `speed` is in samples/s."""

    speed: FloatArray
    jitter_sigma: float
    streams: Streams

    def duration_s(self, client: IntArray, draw: int, samples: FloatArray) -> FloatArray:
        sigma, half_variance = self._of_jitter
        z = normal_quantile(self.streams.uniform("compute-jitter", client, draw))
        duration_s: FloatArray = samples / self.speed[client] * np.exp(sigma * z - half_variance)
        return duration_s

    @cached_property
    def _of_jitter(self) -> tuple[FloatArray, FloatArray]:
        return constant(self.jitter_sigma), constant(self.jitter_sigma**2 / 2)

    def expected_s(self, samples: FloatArray) -> FloatArray:
        return samples / self.speed


class ZeroCompute(Component):
    """Work takes no time: for studies of latency alone.

    Examples
    --------
    >>> from fedsim.run_setup import RunSetup
    >>> from fedsim.streams import Streams
    >>> ZeroCompute().build(RunSetup(2, Streams(0))).expected_s(np.array([200.0, 1e6])).tolist()
    [0.0, 0.0]
    """

    requires: ClassVar[frozenset[str]] = frozenset()

    def build(self, run: RunSetup) -> "ZeroTimes":
        return ZeroTimes()


@dataclass(frozen=True)
class ZeroTimes:
    def duration_s(self, client: IntArray, draw: int, samples: FloatArray) -> FloatArray:
        return np.zeros(np.shape(client))

    def expected_s(self, samples: FloatArray) -> FloatArray:
        return np.zeros(np.shape(samples))


@dataclass(frozen=True)
class WorkTimes:
    """Compute times that are proportional to the samples passed, with jitter and load drawn for each participation."""

    s_per_sample: FloatArray
    jitter: HeterogeneityLaw
    load: Values
    streams: Streams
    fixed_samples: float | None = None

    def duration_s(self, client: IntArray, draw: int, samples: FloatArray) -> FloatArray:
        jitter = self.jitter.factor(self.streams.uniform("compute-jitter", client, draw))
        slower = slowdown(self.streams.uniform("compute-load", client, draw), at(self.load, client))
        return np.asarray(self._counted(samples) * self.s_per_sample[client] * jitter * slower)

    def expected_s(self, samples: FloatArray) -> FloatArray:
        """Return the samples times the mean time and the mean slowdown: the jitter's mean is 1."""
        return self._counted(samples) * self.s_per_sample * mean_slowdown(self.load)

    def _counted(self, samples: FloatArray) -> FloatArray:
        return samples if self.fixed_samples is None else np.full(np.shape(samples), self.fixed_samples)


class Flops(Component):
    """Operations of the work over the speed of the device.

    A client's mean time is ``samples * flops_per_sample / flops_per_s`` times a factor with mean 1 that the client
    keeps, where the samples are those passed through the model in all epochs and the learner counts the
    operations of its model, forward and backward. So `flops_per_s` is the speed of a device that takes the mean
    time. A higher heterogeneity leaves the mean time over the clients as it is.

    Attributes
    ----------
    flops_per_s : effective operations per second, far below the peak of a data sheet; or a value for each client
    spread : law of the clients' factors
        Log-normal with sigma 0.5 by default, and fixed where `flops_per_s` gives each client its own speed.
    heterogeneity : multiple of that law's spread, at the same mean; 0 makes all devices alike
    jitter : law of a factor drawn for each client and participation
    load : mean share of time for which a device is busy with other work, drawn for each client and participation; or
        a value for each client
    """

    requires: ClassVar[frozenset[str]] = frozenset({SAMPLES, FLOPS})

    flops_per_s: Annotated[ClientValues, PerClient(gt=0), FLOPS_PER_SECOND]
    spread: Annotated[HeterogeneityLaw, Slot(HETEROGENEITY_LAWS)] = LogNormal(sigma=0.5)
    heterogeneity: Annotated[NonNegativeFloat, Bound(0.0, 1e6)] = 1.0
    jitter: Annotated[HeterogeneityLaw, Slot(HETEROGENEITY_LAWS)] = LogNormal(sigma=0.1)
    load: Load = 0.0

    @classmethod
    def _completed(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        return _without_spread(options, "flops_per_s", {"spread": "fixed"})

    @model_validator(mode="after")
    def _can_be_spread(self) -> Self:
        if not HETEROGENEITY_LAW.checked(self.spread).allows(self.heterogeneity):
            raise ValueError(
                f"heterogeneity = {self.heterogeneity} is not allowed; "
                f"{HETEROGENEITY_LAWS.kind_of(self.spread)} cannot be "
                "spread so far at the same mean"
            )
        return self

    def build(self, run: RunSetup) -> WorkTimes:
        if run.flops_per_sample is None:
            raise ScenarioError("devices.compute: flops needs a learner that counts the operations per sample")
        factor = HETEROGENEITY_LAW.checked(self.spread).factor(
            run.streams.uniform("compute-spread", np.arange(run.clients)), self.heterogeneity
        )
        s_per_sample = run.flops_per_sample / values_of(self, "flops_per_s", run.clients, run.streams, _HERE) * factor
        load = values_of(self, "load", run.clients, run.streams, _HERE)
        return WorkTimes(s_per_sample, HETEROGENEITY_LAW.checked(self.jitter), load, run.streams)


def _without_spread(options: Mapping[str, Any], speed: str, none: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return options with no further spread, if a speed is given for each client and the spread is not."""
    return options if one_number(options.get(speed, 0.0)) else {**none, **options}


class FedScale(Component):
    """FedScale's rule: ``3 * batch * steps * c / 1000`` seconds with c ms per sample, forward, of the device.

    Lai et al., "FedScale: Benchmarking model and system performance of federated learning at scale", ICML 2022,
    and its code (cloud/internal/client_metadata.py); 3 stands for the forward and the twice as long backward pass.
    The model does not enter. Without `jitter` and `load`, durations are the same in all rounds.

    FedScale's own table of devices is not part of fedsim. Without `path`, c is a whole number drawn uniformly from 15
    to 199, the range measured on that table (its published entries: 21 29 44 82 149 153 162 176), or that
    of one of four classes of phones, as measured ResNet latencies of 978 phones are (a mixture of log-normal laws by
    maximum likelihood): 28 % of 78 ms (median), 54 % of 193 ms, 12 % of 439 ms and 6 % of 761 ms with a long tail.
    Quantiles of the phones and of the law, in ms: 1 %: 49, 49; 5 %: 60, 61; 10 %: 69, 70; 25 %: 96, 96; 50 %: 172, 172;
    75 %: 309, 302; 90 %: 476, 468; 95 %: 559, 585; 99 %: 1650, 2018; 99.5 %: 2062, 3020. A single log-normal law with
    the median 180 and sigma 0.78 has 29 ms at 1 % and 1,105 ms at 99 %.

    Attributes
    ----------
    batch_size, steps : samples of a mini-batch, and mini-batches of each client in each round; both or neither
        In FedScale every client does the same number of steps, cycling through its data. By default the samples
        count that the learner passes.
    law : ``"uniform"`` or ``"phones"``, of c
    path : FedScale's ``client_device_capacity`` or a table with the columns ``computation``
        (ms per sample) and ``communication`` (kbit/s)
    mapping : how clients get entries of the file: ``"random"``, ``"sequential"``, or ``"id"``, each client the row of
        its own id; by default ``"id"`` where there is a column ``client`` or ``id``. A network of kind ``"fedscale"``
        with the same file and mapping gives them the same entries.
    jitter, load : as in `Flops`
    """

    batch_size: Annotated[int, Field(ge=1)] | None = None
    steps: Annotated[int, Field(ge=1), Bound(0, 10**8)] | None = None
    law: Literal["uniform", "phones"] = "uniform"
    path: InputPath | None = None
    mapping: Mapped = None
    jitter: Annotated[HeterogeneityLaw, Slot(HETEROGENEITY_LAWS)] = Fixed()
    load: Load = 0.0

    @property
    def requires(self) -> frozenset[str]:
        """The number of samples, unless steps are given."""
        return frozenset({SAMPLES} if self.steps is None else ())

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        if (self.batch_size is None) != (self.steps is None):
            raise ValueError("batch_size and steps belong together; allowed: both or neither")
        return self

    def build(self, run: RunSetup) -> WorkTimes:
        fixed = None if self.batch_size is None or self.steps is None else float(self.batch_size * self.steps)
        s_per_sample = _FORWARD_AND_BACKWARD * self._ms(run.clients, run.streams) / 1000.0
        load = values_of(self, "load", run.clients, run.streams, _HERE)
        return WorkTimes(s_per_sample, HETEROGENEITY_LAW.checked(self.jitter), load, run.streams, fixed)

    def _ms(self, clients: int, streams: Streams) -> FloatArray:
        if self.path is not None:
            return capacity_of(self.path, "devices.compute.path", "computation", self.mapping, clients, streams)
        u = streams.uniform("compute-spread", np.arange(clients))
        if self.law == "phones":
            return _phones_ms(u)
        return np.floor(15.0 + 185.0 * u)


def _phones_ms(u: FloatArray) -> FloatArray:
    share, median_ms, sigma = np.array(_PHONES).T
    ends = np.cumsum(share)
    kind = np.minimum(np.searchsorted(ends, u), share.size - 1)
    within = np.clip((u - (ends - share)[kind]) / share[kind], _LEAST_LEVEL, 1 - _LEAST_LEVEL)
    return np.asarray(median_ms[kind] * np.exp(sigma[kind] * normal_quantile(within)))
