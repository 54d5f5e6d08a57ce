"""Rows of the validation table: a simulated value beside its theory, and the standard error of the former."""

import math
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

FloatArray = NDArray[np.float64]
PUBLISHED: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("published.toml").read_text("utf-8"))


class Row(NamedTuple):
    """A simulated value and its theory; without a standard error nothing is drawn, and they may differ by rounding."""

    law: str
    simulated: float
    theory: float
    error: float = 0.0

    @property
    def errors(self) -> float:
        """The difference in standard errors."""
        apart = float(self.simulated - self.theory)
        if self.error:
            return apart / self.error
        return 0.0 if abs(apart) <= 1e-9 * abs(self.theory) else math.copysign(math.inf, apart)


def mean_of(law: str, sample: FloatArray, theory: float) -> Row:
    """Return the row of the mean of independent draws."""
    return Row(law, sample.mean(), theory, sample.std(ddof=1) / math.sqrt(sample.size))


def spread_of(law: str, sample: FloatArray, theory: float) -> Row:
    """Return the row of a standard deviation, its error from the sample's fourth moment."""
    square = (sample - sample.mean()) ** 2
    deviation = math.sqrt(float(square.mean()))
    return Row(law, deviation, theory, float(square.std()) / (2 * deviation * math.sqrt(sample.size)))


def share_of(law: str, hits: NDArray[np.bool_], theory: float) -> Row:
    """Return the row of a share of independent draws, its error that of a binomial with the share in theory."""
    return Row(law, hits.mean(), theory, math.sqrt(theory * (1 - theory) / hits.size))


def fit_of(law: str, sample: FloatArray, cdf: Callable[[FloatArray], FloatArray]) -> Row:
    """Return the row of a Kolmogorov-Smirnov test: the p-value as a standard normal number beside 0."""
    return Row(law, float(stats.norm.isf(stats.kstest(cdf(sample), "uniform").pvalue)), 0.0, 1.0)
