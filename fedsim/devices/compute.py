"""How long local training takes.

Streams: ``compute-speed`` by client; ``compute-jitter`` by (client, round).
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, PositiveFloat

from fedsim.devices.base import FloatArray, IntArray
from fedsim.devices.spread import normal_quantile
from fedsim.parts import Catalogue, Part
from fedsim.streams import Streams

COMPUTE_TIMES = Catalogue(
    "compute time",
    "fedsim.compute_times",
    ("build",),
    {
        "rate": "fedsim.devices.compute:Rate",
        "flops": "fedsim.devices.work:Flops",
        "fedscale": "fedsim.devices.work:FedScale",
        "zero": "fedsim.devices.compute:ZeroCompute",
    },
    attributes=("uses_samples", "uses_flops"),
)

Sigma = Annotated[float, Field(ge=0, le=10)]


class Rate(Part):
    """Each client works through so many samples per second, the same one faster or slower from round to round.

    Client k has the speed ``samples_per_s * exp(spread_sigma * Z_k)``, drawn once; its work in a round takes
    ``samples / speed`` times a log-normal jitter with mean 1, drawn for each round.

    Attributes
    ----------
    samples_per_s : median speed over the clients, in samples passed forward and backward
    spread_sigma : standard deviation of the logarithm of the clients' speeds
    jitter_sigma : standard deviation of the logarithm of the jitter
    """

    uses_samples: ClassVar[bool] = True
    uses_flops: ClassVar[bool] = False

    samples_per_s: PositiveFloat
    spread_sigma: Sigma = 0.5
    jitter_sigma: Sigma = 0.1

    def build(self, clients: int, streams: Streams, flops_per_sample: float | None = None) -> "RateTimes":
        """Return the times of one run for this many clients."""
        z = normal_quantile(streams.uniform("compute-speed", np.arange(clients)))
        speed = self.samples_per_s * np.exp(self.spread_sigma * z)
        return RateTimes(speed, self.jitter_sigma, streams)


@dataclass(frozen=True)
class RateTimes:
    """The times of a `Rate` law; `speed` in samples/s has shape (K,)."""

    speed: FloatArray
    jitter_sigma: float
    streams: Streams

    def duration_s(self, client: IntArray, round_: int, samples: FloatArray) -> FloatArray:
        """Return samples / speed times the jitter of each client in this round."""
        z = normal_quantile(self.streams.uniform("compute-jitter", client, round_))
        jitter = np.exp(self.jitter_sigma * z - self.jitter_sigma**2 / 2)
        return np.asarray(samples / self.speed[client] * jitter)

    def expected_s(self, samples: FloatArray) -> FloatArray:
        """Return samples / speed; the jitter's mean is 1."""
        return samples / self.speed


class ZeroCompute(Part):
    """Work takes no time, said by name: for studies of latency alone."""

    uses_samples: ClassVar[bool] = False
    uses_flops: ClassVar[bool] = False

    def build(self, clients: int, streams: Streams, flops_per_sample: float | None = None) -> "ZeroTimes":
        """Return times that are all zero."""
        return ZeroTimes()


@dataclass(frozen=True)
class ZeroTimes:
    """No work takes any time."""

    def duration_s(self, client: IntArray, round_: int, samples: FloatArray) -> FloatArray:
        """Return zeros."""
        return np.zeros(np.shape(client))

    def expected_s(self, samples: FloatArray) -> FloatArray:
        """Return zeros."""
        return np.zeros(np.shape(samples))
