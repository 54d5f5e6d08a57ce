"""Central differential privacy: clients clip, and the server that they trust adds noise to what it aggregates.

DP-FedAvg of McMahan, Ramage, Talwar and Zhang, "Learning differentially private recurrent language models", ICLR 2018.
Neighbouring runs differ in the updates of one client, which count or are zero: so an aggregate of weights w differs by
``clip max_k w_k`` at most, where w_k is the sum of the weights of client k. Noise for that sensitivity protects what
leaves the server, its models; the server itself sees clipped updates.
"""

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray, Mask, Vector
from fedsim.privacy.mechanisms import (
    MECHANISM,
    MECHANISMS,
    CalibratedNoise,
    Mechanism,
    NoisesStatistics,
    StatedNoise,
)
from fedsim.registry import Component, Slot


class ServerNoise(NamedTuple):
    epsilon: float
    clipping_norm: float
    sensitivity: float
    scale: float


class NoiseAtServer(Component):
    """A mechanism whose clipping is done by clients and whose noise is added by the server, once an aggregate."""

    mechanism: Annotated[Mechanism, Slot(MECHANISMS)]

    @property
    def noise_statistics(self) -> bool:
        return isinstance(self.mechanism, NoisesStatistics) and self.mechanism.noise_statistics

    def release(self, update: Vector, epsilon: float, buffers: Mask, rng: np.random.Generator) -> Vector:
        """Return the clipped update, which goes to the server in clear."""
        return self.clipped(update, buffers)

    def clipped(self, update: Vector, buffers: Mask) -> Vector:
        return self._checked.clipped(update, buffers)

    def noise_energy(self, epsilon: float, buffers: Mask) -> float:
        """Return the expected squared norm of the noise of an update of weight 1; NaN if the mechanism states none."""
        if not isinstance(self.mechanism, StatedNoise):
            return math.nan
        # Half the noise of the mechanism, see `noise_of`.
        return 0.25 * float(cast(StatedNoise, self._checked).noise_energy(epsilon, buffers))

    def noise_of(
        self, epsilon: Sequence[float], client: IntArray | Sequence[int], weight: FloatArray | Sequence[float]
    ) -> ServerNoise:
        calibrated, least = self._checked, float(min(epsilon))
        share = largest_weight(client, weight)
        # The mechanism's own noise is for two updates of which none is zero: twice the clipping norm apart.
        scale = 0.5 * share * calibrated.scale(least)
        return ServerNoise(least, calibrated.clipping_norm, 0.5 * share * calibrated.sensitivity, scale)

    def aggregate_noise(
        self,
        epsilon: Sequence[float],
        client: Sequence[int],
        weight: Sequence[float],
        buffers: Mask,
        rng: np.random.Generator,
    ) -> FloatArray:
        share = largest_weight(client, weight)
        return np.asarray(0.5 * share * self._checked.noise(float(min(epsilon)), buffers, rng), dtype=np.float64)

    @property
    def _checked(self) -> "_Calibrated":
        return cast(_Calibrated, MECHANISM.checked(self.mechanism))


class _Calibrated(Mechanism, CalibratedNoise, Protocol):
    """What a mechanism must state whose noise a server adds."""


def largest_weight(client: IntArray | Sequence[int], weight: FloatArray | Sequence[float]) -> float:
    """Return the largest sum of the weights of one client, without their signs."""
    ids = np.asarray(client, dtype=np.int64)
    sizes: NDArray[np.float64] = np.abs(np.asarray(weight, dtype=np.float64))
    _, place = np.unique(ids, return_inverse=True)
    return float(np.bincount(place, weights=sizes).max(initial=0.0))
