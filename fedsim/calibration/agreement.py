"""How well simulated times agree with measured ones: quantiles, and the test of Kolmogorov and Smirnov."""

import math
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from fedsim.arrays import FloatArray

LEVELS: Final = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
_DIGITS: Final = 9
_LEAST_S: Final = 1e-9


@dataclass(frozen=True)
class Agreement:
    title: str
    measured_s: tuple[float, ...]
    simulated_s: tuple[float, ...]
    means_s: tuple[float, float]
    distance: float
    p_value: float
    sizes: tuple[int, int]

    @classmethod
    def of(cls, title: str, measured_s: FloatArray, simulated_s: FloatArray) -> Self:
        """Return the comparison of two samples, shape (n,) and (m,), both at least of size 1."""
        from scipy.stats import ks_2samp

        # Rounds that end at a deadline last equally long, up to the rounding of a clock.
        digits = _DIGITS - math.ceil(math.log10(max(measured_s.max(), simulated_s.max(), _LEAST_S)))
        test = ks_2samp(measured_s.round(digits), simulated_s.round(digits), method="asymp")
        one, other = (
            tuple(float(value) for value in np.quantile(times, LEVELS)) for times in (measured_s, simulated_s)
        )
        means = float(measured_s.mean()), float(simulated_s.mean())
        sizes = measured_s.size, simulated_s.size
        return cls(title, one, other, means, float(test.statistic), float(test.pvalue), sizes)
