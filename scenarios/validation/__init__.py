"""Rows of the validation table: a simulated value beside its theory, and how many standard errors lie between."""

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, special, stats
from simpy import Environment, Event

from fedsim.network import Fading, Nakagami, Rayleigh, Rician

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

ROUNDING: Final = 1e-9
"""Relative difference that counts as none where nothing is drawn."""

_BATCHES: Final = 40
PUBLISHED: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("published.toml").read_text("utf-8"))


def by_hand(formula: str) -> float:
    """Return the value of a formula of `published.toml`."""
    return float(eval(formula, {"__builtins__": {}}, vars(math)))  # noqa: S307 - of this folder


def capacity(snr: float) -> float:
    """Return ``e^(1/snr) E1(1/snr) / ln 2``, the ergodic capacity of Rayleigh fading; U(1, 1, x) is e^x E1(x)."""
    return float(special.hyperu(1.0, 1.0, 1 / snr)) / math.log(2)


def over_rayleigh(value: Callable[[float], float], snr: float, corner: float = 1.0) -> float:
    """Return the mean of a function of ``log2(1 + snr g)`` over Rayleigh fading; it may have a corner at a gain."""

    def density(gain: float) -> float:
        return value(math.log2(1 + snr * gain)) * math.exp(-gain)

    parts = ((0.0, corner), (corner, 60.0))
    return math.fsum(float(integrate.quad(density, *ends, epsabs=1e-13, limit=200)[0]) for ends in parts)


def rate_moments(snr: float) -> tuple[float, float]:
    """Return the means of the rate of a Rayleigh block and of its square."""
    return over_rayleigh(lambda rate: rate, snr), over_rayleigh(lambda rate: rate**2, snr)


K: Final = 10**0.7
FADING: Final[dict[str, tuple[Fading, Any]]] = {
    "Rayleigh": (Rayleigh(), stats.expon()),
    "Rician K = 7 dB": (Rician(k_db=7.0), stats.ncx2(2, 2 * K, scale=1 / (2 * (1 + K)))),
    "Nakagami m = 0.5": (Nakagami(m=0.5), stats.gamma(0.5, scale=2.0)),
    "Nakagami m = 3": (Nakagami(m=3.0), stats.gamma(3.0, scale=1 / 3)),
}
"""Laws of fading, and SciPy's distributions of their gains."""


@dataclass(frozen=True)
class Row:
    law: str
    simulated: float
    theory: float
    errors: float  # standard errors; where nothing is drawn 0 or infinite
    drawn: bool = True


def off_by(law: str, simulated: float, theory: float, error: float) -> Row:
    """Return the row of a drawn value whose standard error is known."""
    return Row(law, float(simulated), theory, float((simulated - theory) / error))


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
    return off_by(law, sample.mean(), theory, sample.std(ddof=1) / math.sqrt(sample.size))


def batch_mean_of(law: str, sample: FloatArray, theory: float) -> Row:
    """Return the row of the mean of a stationary series, its error from the means of 40 batches."""
    return mean_of(law, sample.reshape(_BATCHES, -1).mean(axis=1), theory)


def deviation_of(law: str, sample: FloatArray, centre: float, theory: float) -> Row:
    """Return the row of the standard deviation of normal draws around a known centre: its error is sigma / sqrt(2n)."""
    deviation = math.sqrt(float(np.mean((sample - centre) ** 2)))
    return off_by(law, deviation, theory, theory / math.sqrt(2 * sample.size))


def spread_of(law: str, sample: FloatArray, theory: float) -> Row:
    """Return the row of a standard deviation, its error from the sample's fourth moment."""
    square = (sample - sample.mean()) ** 2
    deviation = math.sqrt(float(square.mean()))
    return off_by(law, deviation, theory, float(square.std()) / (2 * deviation * math.sqrt(sample.size)))


def share_of(law: str, hits: BoolArray, theory: float) -> Row:
    """Return the row of a share of independent draws, its error that of a binomial with the share in theory."""
    return off_by(law, hits.mean(), theory, math.sqrt(theory * (1 - theory) / hits.size))


def fit_of(law: str, sample: FloatArray, cdf: Callable[[FloatArray], FloatArray]) -> Row:
    """Return the row of a Kolmogorov-Smirnov test: the statistic, its mean if the law holds, and the p-value as z."""
    test = stats.kstest(cdf(sample), "uniform")
    mean = math.sqrt(math.pi / 2) * math.log(2) / math.sqrt(sample.size)
    return Row(law, float(test.statistic), mean, float(stats.norm.isf(test.pvalue)))


def one_after_other(env: Environment, number: int, send: Callable[[], Event]) -> FloatArray:
    """Return how long transfers take that follow one another without a gap."""
    ends_s = [env.now]
    for _ in range(number):
        env.run(until=send())
        ends_s.append(env.now)
    return np.diff(ends_s)
