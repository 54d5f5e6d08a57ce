"""How often the intervals of a study hold the truth: simulated studies whose difference is known.

    python scenarios/study_coverage.py [--studies N]

Times to a target are log-normal, with medians of 30 s and 24 s and a correlation of 0.8 within a pair. A horizon of
34 s leaves 35 % and 14 % of the runs without a target.
"""

import math
from collections.abc import Iterable
from itertools import product

import numpy as np
from scipy import stats
from study_scripts import sizes, table

from fedsim.studies.comparing.pairs import Interval, Sample, paired, t_interval
from fedsim.studies.questions.enough import pairs_needed

MEDIANS_S, SIGMA, CORRELATION, LEVEL = (30.0, 24.0), 0.325, 0.8, 0.95
HORIZONS_S = {"all reached": math.inf, "34 s": 34.0, "26 s": 26.0, "14 s": 14.0}
MOST = 400  # pairs


def times(rng: np.random.Generator, pairs: int) -> np.ndarray:
    """Return the seconds of both variants, shape (2, pairs)."""
    shared, own = rng.normal(size=pairs), rng.normal(size=(2, pairs))
    logs = np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * own
    return np.asarray(np.array(MEDIANS_S)[:, None] * np.exp(SIGMA * logs))


def difference(horizon_s: float = math.inf) -> float:
    """Return the true difference of the means of min(time, horizon)."""
    before, after = (stats.lognorm(SIGMA, scale=median_s) for median_s in MEDIANS_S)
    means = [
        of.expect(ub=horizon_s) + (horizon_s * of.sf(horizon_s) if horizon_s < math.inf else 0.0)
        for of in (before, after)
    ]
    return float(means[1] - means[0])


def holds(intervals: Iterable[Interval], truth: float) -> str:
    held = [float(low <= truth <= high) for low, high in intervals]
    return f"{np.mean(held or [np.nan]):.1%}"


def fixed(rng: np.random.Generator, studies: int, pairs: int, horizon_s: float) -> list[str]:
    """Return how often the interval holds, that of the ratio does, and how often it is refused."""
    ends, found = math.isfinite(horizon_s), []
    for _ in range(studies):
        value = times(rng, pairs)
        far = np.full(value.shape, horizon_s)
        sample = Sample(np.minimum(value, far), value <= far, far)
        found.append(paired(sample, LEVEL, horizon_s if ends else None, "s"))
    told = [one for one in found if not one.refused]
    ratio = "-" if ends else holds((one.ratio_interval for one in told), MEDIANS_S[1] / MEDIANS_S[0])
    held = holds((one.interval for one in told), difference(horizon_s))
    return [held, ratio, f"{1 - len(told) / studies:.1%}"]


def until(rng: np.random.Generator, studies: int, first: int, share: float) -> list[str]:
    """Return how often the interval holds after the spread of a first block, and after a narrow one; mean pairs."""
    enough, lucky, counts, n = [], [], [], np.arange(1, MOST + 1)
    for _ in range(studies):
        value = times(rng, MOST)
        apart_s, width_s = value[1] - value[0], share * value[0, :first].mean()
        counts.append(min(MOST, max(2 * first, pairs_needed(apart_s[:first], width_s, LEVEL))))
        enough.append(t_interval(apart_s[: counts[-1]], LEVEL))
        squares = np.cumsum(apart_s**2) - np.cumsum(apart_s) ** 2 / n
        half_s = stats.t.ppf((1 + LEVEL) / 2, n[1:] - 1) * np.sqrt(squares[1:] / (n[1:] - 1) / n[1:])
        narrow = np.flatnonzero(half_s[first - 2 :] <= width_s)
        lucky.append(t_interval(apart_s[: first + narrow[0] if narrow.size else MOST], LEVEL))
    return [holds(enough, difference()), holds(lucky, difference()), f"{np.mean(counts):.1f}"]


def main() -> None:
    studies, rng = sizes(__file__, __doc__, writes=False, studies=1000).studies, np.random.default_rng(1)
    cases = product(HORIZONS_S.items(), (5, 10, 20))
    rows = [[name, pairs, *fixed(rng, studies, pairs, horizon_s)] for (name, horizon_s), pairs in cases]
    table(["horizon", "pairs", "holds", "ratio", "refused"], rows)
    print()
    blocks = product((0.05, 0.1), (5, 10, 20))
    rows = [[f"{share:.0%}", first, *until(rng, studies, first, share)] for share, first in blocks]
    table(["until within", "first", "holds", "narrow", "pairs"], rows)


if __name__ == "__main__":
    main()
