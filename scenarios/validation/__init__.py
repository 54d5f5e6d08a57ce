"""Rows of the validation table: a simulated value beside its theory, and how many standard errors lie between."""

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

ROUNDING: Final = 1e-9
"""Relative difference that counts as none where nothing is drawn."""

_BATCHES: Final = 40
PUBLISHED: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("published.toml").read_text("utf-8"))


def by_hand(formula: str) -> float:
    """Return the value of a formula of `published.toml`."""
    return float(eval(formula, {"__builtins__": {}}, vars(math)))  # noqa: S307 - of this folder


@dataclass(frozen=True)
class Row:
    law: str
    simulated: float
    theory: float
    errors: float  # standard errors; where nothing is drawn 0 or infinite
    drawn: bool = True


def exact(law: str, simulated: float, theory: float, within: float = ROUNDING) -> Row:
    """Return the row of a value without draws; it may differ by rounding, or by a quadrature's stated error."""
    same = math.isclose(simulated, theory, rel_tol=within, abs_tol=1e-12)
    return Row(law, float(simulated), theory, 0.0 if same else math.copysign(math.inf, simulated - theory), drawn=False)


def tabulated(law: str, simulated: float, theory: float, digits: int) -> Row:
    """Return the row of a value without draws beside one that is printed with so many digits after the point."""
    same = abs(simulated - theory) <= 0.51 * 10.0**-digits
    return Row(law, simulated, theory, 0.0 if same else math.copysign(math.inf, simulated - theory), drawn=False)


def mean_of(law: str, sample: FloatArray, theory: float) -> Row:
    """Return the row of the mean of independent draws."""
    error = sample.std(ddof=1) / math.sqrt(sample.size)
    return Row(law, float(sample.mean()), theory, float((sample.mean() - theory) / error))


def batch_mean_of(law: str, sample: FloatArray, theory: float) -> Row:
    """Return the row of the mean of a stationary series, its error from the means of 40 batches."""
    batches = sample.reshape(_BATCHES, -1).mean(axis=1)
    return mean_of(law, batches, theory)


def deviation_of(law: str, sample: FloatArray, centre: float, theory: float) -> Row:
    """Return the row of the standard deviation of normal draws around a known centre: its error is sigma / sqrt(2n)."""
    deviation = math.sqrt(float(np.mean((sample - centre) ** 2)))
    return Row(law, deviation, theory, (deviation - theory) / (theory / math.sqrt(2 * sample.size)))


def share_of(law: str, hits: BoolArray, theory: float) -> Row:
    """Return the row of a share of independent draws, its error that of a binomial with the share in theory."""
    share = float(hits.mean())
    return Row(law, share, theory, (share - theory) / math.sqrt(theory * (1 - theory) / hits.size))


def fit_of(law: str, sample: FloatArray, cdf: Callable[[FloatArray], FloatArray]) -> Row:
    """Return the row of a Kolmogorov-Smirnov test: the statistic, its mean if the law holds, and the p-value as z."""
    test = stats.kstest(cdf(sample), "uniform")
    mean = math.sqrt(math.pi / 2) * math.log(2) / math.sqrt(sample.size)
    return Row(law, float(test.statistic), mean, float(stats.norm.isf(test.pvalue)))
