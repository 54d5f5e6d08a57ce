"""Round times in the long run, by batch means, after a warm-up that is found by the rule of MSER-5."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.history import History
from fedsim.studies.comparing.pairs import Interval, t_interval
from fedsim.studies.study import StudyError
from fedsim.units import in_seconds

_BATCHES = 20
_FEWEST = 200
"""Rounds that batches of ten need."""
_BEYOND = 4
"""Rounds of a batch beyond a quantile that an interval of it needs: with one it holds 88 %, with four 93 % or more."""


@dataclass(frozen=True)
class Steady:
    """Mean and quantiles of the round time with their intervals; ``warm_up`` rounds at the beginning do not count."""

    rounds: int
    warm_up: int
    mean: float
    interval: Interval
    quantiles: dict[float, tuple[float, Interval]]
    level: float = 0.95

    @property
    def sentences(self) -> list[str]:
        by = f"{100 * self.level:g}% by {_BATCHES} batch means of {(self.rounds - self.warm_up) // _BATCHES} rounds"
        first = (
            f"Mean round {in_seconds(self.mean, 4)} s +- {self.interval.half:.2g} ({by}; {self.warm_up} rounds of "
            "warm-up, found by MSER-5, are left out)."
        )
        shown = []
        for share, (value, ends) in self.quantiles.items():
            beyond, half = min(share, 1 - share), f"+- {ends.half:.2g}"
            if math.isnan(ends.half):
                half = f"(an interval takes {_BATCHES * _BEYOND / beyond:,.0f} rounds)" if beyond else "(no interval)"
            shown.append(f"{100 * share:g} % within {in_seconds(value, 4)} s {half}")
        return [first, f"{', '.join(shown)}."]


def steady(run: History, shares: Sequence[float] = (0.5, 0.95, 0.99), level: float = 0.95) -> Steady:
    if not 0.5 <= level <= 0.999:
        raise StudyError(f"level: {level!r} is not allowed; allowed: 0.5 to 0.999, as 0.95")
    times = run.column("rounds", "duration_s").astype(np.float64)
    warm = warm_up(times)
    if times.size - warm < _FEWEST:
        raise StudyError(f"{run.name}: {times.size} rounds, {warm} of warm-up, are too few; allowed: {_FEWEST} more")
    batches = np.array_split(times[warm:], _BATCHES)
    mean = t_interval(np.array([batch.mean() for batch in batches]), level)
    quantiles = {}
    for share in shares:
        value, known = float(np.quantile(times[warm:], share)), batches[-1].size * min(share, 1 - share) >= _BEYOND
        # That of a short batch is off to one side, so that the interval is not one around their mean.
        half = t_interval(np.array([np.quantile(batch, share) for batch in batches]), level).half if known else math.nan
        quantiles[share] = (value, Interval(value - half, value + half))
    return Steady(times.size, warm, float(times[warm:].mean()), mean, quantiles, level)


def warm_up(times: FloatArray) -> int:
    """Return how many values to leave out: the cut whose rest has the least error of its mean (MSER-5)."""
    fives = times[: times.size // 5 * 5].reshape(-1, 5).mean(axis=1)
    if fives.size < 4:
        return 0
    fives -= fives.mean()
    # Values that are the same but for rounding have no warm-up.
    fives[np.abs(fives) <= 1e-9 * np.abs(times).max()] = 0.0
    sizes = np.arange(fives.size, 0, -1)
    sums, squares = (np.cumsum(of[::-1])[::-1] for of in (fives, fives**2))
    errors = np.maximum(squares - sums**2 / sizes, 0.0) / sizes**2.0
    return 5 * int(np.argmin(errors[: math.ceil(fives.size / 2)]))
