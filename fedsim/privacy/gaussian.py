"""The Gaussian mechanism: clipping in Euclidean norm, then normal noise; approximate differential privacy.

Noise is scaled by the exact condition of Balle and Wang, "Improving the Gaussian mechanism for differential privacy:
analytical calibration and optimal denoising", ICML 2018, Theorem 8, and not by the older ``sqrt(2 ln(1.25 / delta))``
(Dwork and Roth, 2014, Theorem A.1), which holds below epsilon = 1 only and asks for more noise than is needed.
"""

import math
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fedsim.arrays import FloatArray, Mask
from fedsim.privacy.mechanisms import ClippedNoise

_LEAST, _MOST = 1e-160, 1e300
"""Noise multipliers between which the calibrated one is searched."""


class L2ClippedGaussian(ClippedNoise):
    """The Gaussian mechanism for the whole update: (epsilon, delta)-LDP.

    The update is scaled down to a Euclidean norm of at most ``clip``. Two clipped updates differ by at most ``2 clip``,
    the sensitivity, so normal noise of the standard deviation ``2 clip noise_multiplier(epsilon, delta)`` on every
    coordinate makes the release (epsilon, delta)-LDP, whatever its dimension. Releases compose by summation: what a
    client leaks is the sum of its epsilons, with the sum of its deltas. `fedsim.privacy.composition` has the
    tighter sum.

    Attributes
    ----------
    clip : largest Euclidean norm of an update that is sent
    delta : probability mass that epsilon does not bound, of each release; well below one over the samples of a client
    exempt_buffers : whether parameters of batch normalisation pass in clear, unclipped and without noise
        They leak: the guarantee then holds for the other coordinates only.
    noise_statistics : whether running statistics are clipped and get noise as part of the update
        By default they are averaged in clear, since a variance with noise may fall below zero, and leak.

    Examples
    --------
    >>> gaussian = L2ClippedGaussian(clip=2.5, delta=1e-5)
    >>> round(gaussian.scale(1.0) / noise_multiplier(1.0, 1e-5), 6)  # 2 clip
    5.0
    >>> gaussian.clipped(np.array([3.0, 4.0], dtype=np.float32), np.zeros(2, dtype=bool)).tolist()  # times 2.5 / 5
    [1.5, 2.0]
    """

    variance: ClassVar[float] = 1.0

    clip: Annotated[float, Field(gt=0)]
    delta: Annotated[float, Field(ge=1e-12, lt=1)] = 1e-5

    @property
    def sensitivity(self) -> float:
        return 2.0 * self.clip

    def scale(self, epsilon: float) -> float:
        return self.sensitivity * noise_multiplier(float(epsilon), self.delta)

    def _drawn(self, scale: float, size: int, rng: np.random.Generator) -> FloatArray:
        return rng.normal(0.0, scale, size)

    def _bounded(self, values: FloatArray, clear: Mask) -> FloatArray:
        norm = float(np.linalg.norm(values[~clear]))
        return values * (self.clip / norm) if norm > self.clip else values


@lru_cache(maxsize=4096)
def noise_multiplier(epsilon: float, delta: float) -> float:
    """Return the least standard deviation of noise over the sensitivity that is (epsilon, delta)-DP."""
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"epsilon: {epsilon!r} is not allowed; it must be a finite number of at least 0")
    if not 1e-12 <= delta < 1:
        raise ValueError(f"delta: {delta!r} is not allowed; it must be in [1e-12, 1)")
    # Runs without this mechanism need not load SciPy.
    from scipy.optimize import brentq
    from scipy.special import log_ndtr

    def excess(log_multiplier: float) -> float:
        """Return the logarithm of the delta of a multiplier less that of the wanted one; it falls."""
        multiplier = math.exp(log_multiplier)
        half, shift = 0.5 / multiplier, epsilon * multiplier
        kept, repaid = float(log_ndtr(half - shift)), epsilon + float(log_ndtr(-half - shift))
        left = kept + math.log1p(-math.exp(repaid - kept)) if repaid < kept else -math.inf
        return max(left, -1e4) - math.log(delta)

    return math.exp(float(brentq(excess, math.log(_LEAST), math.log(_MOST), xtol=1e-14, maxiter=5000)))
