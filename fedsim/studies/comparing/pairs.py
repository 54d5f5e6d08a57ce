"""Intervals for paired differences.

Which intervals hold what they promise was measured; the figures stand on the page of this room. All runs reach a
target: Student's t on the differences, and on logarithms for a ratio. Some do not: t on min(value, horizon), the
restricted mean, where the horizon was named beforehand and every run was watched that far.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from scipy import stats

from fedsim.arrays import BoolArray, FloatArray

FEWEST_APART: Final = 3
"""Pairs that differ before the horizon that an interval needs at least."""
SHARE_APART: Final = 0.5
"""Share of the pairs that has to differ before the horizon."""
ENOUGH_FOR_SPREAD: Final = 8
"""Pairs from which on a variance ratio, and how many more pairs would do, are worth a number."""
_ROUNDING: Final = 1e-9
"""Share of the largest value up to which a difference may be one of rounding alone."""


class Interval(NamedTuple):
    """Ends of an interval; NaN where the data do not determine them."""

    low: float = math.nan
    high: float = math.nan

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2


UNKNOWN: Final = Interval()


class Sample(NamedTuple):
    """The values of one metric for the pairs of two variants: the baseline's first, shape (2, n) each."""

    value: FloatArray
    reached: BoolArray
    watched: FloatArray


@dataclass(frozen=True)
class Paired:
    """What a sample says of variant less baseline; NaN, and words in ``refused``, where it says nothing.

    ``horizon`` is finite where the mean is that of min(value, horizon).
    """

    pairs: int
    unreached: tuple[int, int]
    p_shares: float
    horizon: float = math.inf
    means: tuple[float, float] = (math.nan, math.nan)
    difference: float = math.nan
    interval: Interval = UNKNOWN
    ratio: float = math.nan
    ratio_interval: Interval = UNKNOWN
    p: float = math.nan
    variance_ratio: float = math.nan
    more_pairs: int | None = None
    refused: str = ""


def t_interval(values: FloatArray, level: float) -> Interval:
    """Return Student's interval for a mean; both ends are the mean where all values are one."""
    if values.size < 2:
        return Interval()
    mean = float(values.mean())
    if np.ptp(values) <= _ROUNDING * np.abs(values).max():
        return Interval(mean, mean)
    half = float(stats.t.ppf((1 + level) / 2, values.size - 1) * stats.sem(values))
    return Interval(mean - half, mean + half)


def paired(sample: Sample, level: float = 0.95, horizon: float | None = None, unit: str = "") -> Paired:
    """Compare the values of pairs; a horizon is one that was named before the runs."""
    n = sample.value.shape[1]
    cut = math.inf if horizon is None else horizon
    in_time = sample.reached & (sample.value <= cut * (1 + _ROUNDING))
    unreached = (n - int(in_time[0].sum()), n - int(in_time[1].sum()))
    known = Paired(n, unreached, _exact(in_time))
    values = sample.value
    if np.isnan(values).any():
        return replace(known, refused=f"{int(np.isnan(values).any(axis=0).sum())} of {n} pairs have no value")
    if horizon is None and any(unreached):
        return replace(known, refused=f"no horizon was named before the runs: {_would_do(sample, unit)}")
    short = ~sample.reached & (sample.watched < cut)
    if short.any():
        far = float(sample.watched[~sample.reached].min())
        why = f"{int(short.sum())} runs were not watched up to {cut:.4g} {unit}, but {far:.4g}"
        return replace(known, refused=why)
    # A run that ended for good before the horizon reaches nothing later.
    values = np.where(sample.reached, np.minimum(values, cut), cut)
    differences = values[1] - values[0]
    differences[np.abs(differences) <= _ROUNDING * np.abs(values).max(initial=0.0)] = 0.0
    cuts = any(unreached)
    apart = int(np.count_nonzero(differences))
    if cuts and apart < max(FEWEST_APART, SHARE_APART * n):
        return replace(known, refused=f"{apart} of {n} pairs differ before {cut:.4g} {unit}: {_would_do(sample, unit)}")
    if n < 2:
        return replace(known, refused="one pair has no interval")
    interval = t_interval(differences, level)
    spread = float(differences.std(ddof=1)) if interval.half else 0.0
    unpaired = float(values.var(axis=1, ddof=1).sum())
    logs = np.log(values[1] / values[0]) if not cuts and (values > 0).all() else np.empty(0)
    with np.errstate(over="ignore"):
        ratio_interval = Interval(*np.exp(t_interval(logs, level)).tolist())
    mean = float(differences.mean()) if abs(differences.sum()) > _ROUNDING * np.abs(differences).max() else 0.0
    return replace(
        known,
        horizon=cut if cuts else math.inf,
        means=(float(values[0].mean()), float(values[1].mean())),
        difference=mean,
        interval=interval,
        ratio=float(np.exp(logs.mean())) if logs.size else math.nan,
        ratio_interval=ratio_interval,
        p=float(stats.ttest_1samp(differences, 0.0).pvalue) if spread > 0 else math.nan,
        variance_ratio=spread**2 / unpaired if n >= ENOUGH_FOR_SPREAD and unpaired > 0 else math.nan,
        more_pairs=_more(mean, spread, n, level) if n >= ENOUGH_FOR_SPREAD else None,
    )


def _exact(reached: BoolArray) -> float:
    """Return the probability of McNemar's exact test that both reach equally often."""
    only = [int((reached[i] & ~reached[1 - i]).sum()) for i in (0, 1)]
    return float(stats.binomtest(only[0], sum(only)).pvalue) if sum(only) else 1.0


def _would_do(sample: Sample, unit: str) -> str:
    """Return in words which horizon would give an interval, for runs with other seeds."""
    sides = np.where(sample.reached, sample.value, math.inf)
    # A pair of equal values differs before no horizon.
    first = np.where(sides[0] == sides[1], math.inf, sides.min(axis=0))
    needed = max(FEWEST_APART, math.ceil(SHARE_APART * first.size))
    at = float(np.sort(first)[needed - 1]) if needed <= first.size else math.inf
    at = max(at, float(sample.value[sample.value > 0].min(initial=math.inf)))
    if math.isinf(at):
        far = float(sample.watched.max())
        beyond = f", beyond {far:.3g} {unit}" if math.isfinite(far) else ""
        return f"too few runs get there; name a longer horizon{beyond}, or an easier target, and run other seeds"
    return f"a horizon of {_rounded_up(1.25 * at):g} {unit} would do; name it, and run other seeds"


def _rounded_up(value: float) -> float:
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / step) * step


def _more(mean: float, spread: float, pairs: int, level: float) -> int | None:
    """Return how many more pairs make the half width as small as the difference; None beyond 1,000."""
    if spread <= 0:
        return 0
    counts = np.arange(pairs, 1001)
    half = stats.t.ppf((1 + level) / 2, counts - 1) * spread / np.sqrt(counts)
    enough = np.flatnonzero(half <= abs(mean))
    return int(enough[0]) if enough.size else None


def holm(values: Sequence[float]) -> list[float]:
    """Return Holm's corrected probabilities; one that is no number stays so, and counts in the family."""
    found, running = list(values), 0.0
    order = sorted((i for i, p in enumerate(values) if not math.isnan(p)), key=lambda i: values[i])
    for rank, i in enumerate(order):
        running = max(running, min(1.0, values[i] * (len(values) - rank)))
        found[i] = running
    return found
