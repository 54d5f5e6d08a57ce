"""Laws of times fitted to a sample by maximum likelihood; Akaike's information criterion finds the better ones.

Where no law of fedsim holds, a table of quantiles stands for one. A time that was cut short says that the whole time is
longer: its likelihood is that of being longer, and quantiles are those of Kaplan and Meier (1958).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray

EMPIRICAL: Final = "empirical"
_Pair = tuple[float, float]
_OTHERS: Final = ("gamma", "weibull")
_QUANTILES: Final = 256
_SAME: Final = 1e-9
_KS_1_PERCENT: Final = 1.628
"""Kolmogorov's quantile at 99 %: the largest distance of n draws from their law, times sqrt(n)."""
_DECISIVE: Final = 10.0
"""Akaike's criterion above the least one at which a law has essentially no support (Burnham and Anderson, 2002)."""
_MASS: Final = 0.01
"""Share of the times that are the very least one, from which there is a floor."""


@dataclass(frozen=True)
class Fit:
    kind: str
    options: Mapping[str, Any]
    errors: Mapping[str, float] = field(default_factory=dict)
    aic: Mapping[str, float] = field(default_factory=dict)
    distance: float = 0.0
    size: int = 0
    cut: int = 0

    def table(self) -> dict[str, Any]:
        return {"kind": self.kind, **self.options}


@dataclass(frozen=True)
class _Tried:
    """One law: log-likelihood, number of parameters, distribution function at the times, options and errors."""

    loglik: float
    parameters: int
    cdf: FloatArray
    options: dict[str, Any]
    errors: dict[str, float]


def fit_law(times_s: FloatArray, cut: BoolArray, *, kinds: tuple[str, ...] | None = None) -> Fit:
    """Return the law that explains times best."""
    whole = times_s[~cut]
    if not whole.size:
        raise ValueError("times_s: every time was cut short; at least one must be whole")
    size, cuts = int(times_s.size), int(cut.sum())
    centre = float(whole.mean())
    if np.ptp(whole) <= _SAME * max(centre, _SAME):
        options = {} if centre == 0 else {"value_s": centre}
        return Fit("constant" if options else "zero", options, dict.fromkeys(options, 0.0), {}, 0.0, size, cuts)
    tried = _tried(times_s, cut, kinds)
    aic = {name: 2.0 * one.parameters - 2.0 * one.loglik for name, one in tried.items()}
    steps_s, survival = kaplan_meier(times_s, cut)
    own = [name for name in aic if name not in _OTHERS]
    if own:
        best = min(own, key=lambda name: (aic[name], name))
        at = np.searchsorted(np.sort(whole), steps_s)
        law_cdf = np.sort(tried[best].cdf[~cut])[np.minimum(at, whole.size - 1)]
        before = np.concatenate([[1.0], survival[:-1]])
        distance = float(max(np.abs(1 - survival - law_cdf).max(), np.abs(1 - before - law_cdf)[1:].max(initial=0.0)))
        limit = _KS_1_PERCENT / math.sqrt(whole.size)
        if distance <= limit and aic[best] <= min(aic.values()) + _DECISIVE:
            return Fit(best, tried[best].options, tried[best].errors, aic, distance, size, cuts)
    values = quantiles(steps_s, survival, min(_QUANTILES, whole.size))
    return Fit(EMPIRICAL, {"values_s": [float(f"{value:.7g}") for value in values]}, {}, aic, 0.0, size, cuts)


def _at_floor(times_s: FloatArray, cut: BoolArray) -> BoolArray:
    """Return which times are at a floor, shape (n,): all that are the very least, if they are no few."""
    least = ~cut & (times_s == times_s[~cut].min())
    return np.asarray(least & (np.count_nonzero(least) > max(1, _MASS * times_s.size)))


def _tried(times_s: FloatArray, cut: BoolArray, kinds: tuple[str, ...] | None) -> dict[str, _Tried]:
    found: dict[str, _Tried] = {}
    # Where many times are the same, no law with a density can hold.
    others: tuple[str, ...] = _OTHERS
    if _at_floor(times_s, cut).any():
        kinds, others = ("normal",) if kinds is None else (), ()
    for name, attempt in (
        ("log-normal", _log_normal),
        ("normal", _normal),
        ("shifted-exponential", _shifted_exponential),
        ("gamma", partial(_other, "gamma")),
        ("weibull", partial(_other, "weibull")),
    ):
        if kinds is None or name in kinds or name in others:
            one = attempt(times_s, cut)
            if one is not None and math.isfinite(one.loglik):
                found[name] = one
    return found


def _log_normal(times_s: FloatArray, cut: BoolArray) -> _Tried | None:
    from scipy.stats import norm

    if times_s.min() <= 0:
        return None
    logs = np.log(times_s)
    (mean, std), (mean_error, std_error) = _normal_parameters(logs, cut)
    loglik = norm.logpdf(logs[~cut], mean, std).sum() - logs[~cut].sum() + norm.logsf(logs[cut], mean, std).sum()
    median = math.exp(mean)
    errors = {"median_s": median * mean_error, "sigma": std_error}
    return _Tried(float(loglik), 2, norm.cdf(logs, mean, std), {"median_s": median, "sigma": std}, errors)


def _normal(times_s: FloatArray, cut: BoolArray) -> _Tried | None:
    """Return a normal law, with a floor where many times are the very least, as draws below a floor are."""
    from scipy.stats import norm

    least, at_floor = times_s[~cut].min(), _at_floor(times_s, cut)
    (mean, std), errors = _normal_parameters(times_s, cut, at_floor)
    if mean < 0:
        return None
    inner = ~cut & ~at_floor
    loglik = (
        norm.logpdf(times_s[inner], mean, std).sum()
        + norm.logsf(times_s[cut], mean, std).sum()
        + norm.logcdf(times_s[at_floor], mean, std).sum()
    )
    options = {"centre_s": mean, "std_s": std, "floor_s": float(least) if at_floor.any() else 0.0}
    named = dict(zip(("centre_s", "std_s"), errors, strict=True))
    return _Tried(float(loglik), 2 + bool(at_floor.any()), norm.cdf(times_s, mean, std), options, named)


def _normal_parameters(values: FloatArray, cut: BoolArray, floored: BoolArray | None = None) -> tuple[_Pair, _Pair]:
    """Return mean and deviation of a normal law by maximum likelihood, as unbiased as of whole times, and errors."""
    from scipy.stats import CensoredData, norm

    floored = np.zeros(cut.size, dtype=bool) if floored is None else floored
    inner = ~cut & ~floored
    count = np.count_nonzero(inner)
    mean, std = float(values[inner].mean()), float(values[inner].std(ddof=1))
    if count == values.size:
        return (mean, std), (std / math.sqrt(count), std / math.sqrt(2 * count))
    # Around the mean of the whole ones, and in their unit, so that the search begins near its end.
    scaled = (values - mean) / std
    data = CensoredData(uncensored=scaled[inner], left=scaled[floored], right=scaled[cut])
    shift, scale = norm.fit(data, loc=0.0, scale=1.0)
    mean, std = mean + std * float(shift), std * float(scale)
    # Observed information: a time that was cut tells less than a whole one.
    z = (values - mean) / std
    information = np.array([[count, 2 * z[inner].sum()], [2 * z[inner].sum(), 3 * np.square(z[inner]).sum() - count]])
    for sign, beyond in ((1, z[cut]), (-1, -z[floored])):
        hazard = np.exp(norm.logpdf(beyond) - norm.logsf(beyond))
        slope = hazard * (hazard - beyond)
        both = sign * (hazard + beyond * slope).sum()
        information += [[slope.sum(), both], [both, (beyond * (2 * hazard + beyond * slope)).sum()]]
    errors = std * np.sqrt(np.diag(np.linalg.inv(information)))
    return (mean, std), (float(errors[0]), float(errors[1]))


def _shifted_exponential(times_s: FloatArray, cut: BoolArray) -> _Tried | None:
    whole = times_s[~cut]
    count, least = whole.size, float(whole.min())
    if count < 2:
        return None
    above = np.maximum(times_s - least, 0.0)
    # The least of n times lies scale / n above the shift, those among them that were cut later.
    scale, at_risk = float(above.sum() / (count - 1)), int(np.count_nonzero(times_s >= least))
    shift = max(0.0, least - scale / at_risk)
    above = np.maximum(times_s - shift, 0.0)
    loglik = -count * math.log(scale) - float(above.sum()) / scale
    errors = {"shift_s": scale / at_risk, "scale_s": scale / math.sqrt(count)}
    return _Tried(loglik, 2, -np.expm1(-above / scale), {"shift_s": shift, "scale_s": scale}, errors)


def _other(name: str, times_s: FloatArray, cut: BoolArray) -> _Tried | None:
    from scipy.stats import CensoredData, FitError, gamma, weibull_min

    law: Any = {"gamma": gamma, "weibull": weibull_min}[name]
    if times_s.min() <= 0:
        return None
    unit = float(times_s[~cut].mean())
    scaled = times_s / unit
    try:
        shape, _, scale = law.fit(CensoredData(uncensored=scaled[~cut], right=scaled[cut]), floc=0.0)
    except FitError:
        return None
    loglik = law.logpdf(scaled[~cut], shape, scale=scale).sum() + law.logsf(scaled[cut], shape, scale=scale).sum()
    cdf = law.cdf(scaled, shape, scale=scale)
    return _Tried(float(loglik) - np.count_nonzero(~cut) * math.log(unit), 2, cdf, {}, {})


def kaplan_meier(times_s: FloatArray, cut: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the whole times, ascending and each once, and the share of times beyond each, shape (m,) both."""
    steps_s, ends = np.unique(times_s[~cut], return_counts=True)
    at_risk = times_s.size - np.searchsorted(np.sort(times_s), steps_s, side="left")
    return steps_s, np.asarray(np.cumprod(1.0 - ends / at_risk), dtype=np.float64)


def quantiles(steps_s: FloatArray, survival: FloatArray, count: int) -> NDArray[np.float64]:
    """Return times at the middles of ``count`` equal shares, shape (count,); what lies beyond all is the longest."""
    levels = (np.arange(count) + 0.5) / count
    place = np.searchsorted(1.0 - survival, levels - 1e-12, side="left")
    return steps_s[np.minimum(place, steps_s.size - 1)]
