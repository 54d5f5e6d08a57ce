"""How often the intervals of a study hold the truth: simulated studies whose difference is known.

    python scenarios/study_coverage.py [--studies N]

Times to a target are log-normal, with medians of 30 s and 24 s and a correlation of 0.8 within a pair. A horizon of
34 s leaves 35 % and 14 % of the runs without a target.
"""

from itertools import product

import numpy as np
from scipy import stats
from study_scripts import sizes, table

from fedsim.studies.comparing.pairs import Sample, paired, t_interval
from fedsim.studies.questions.enough import pairs_needed

MEDIANS_S, SIGMA, CORRELATION = (30.0, 24.0), 0.325, 0.8
LEVEL = 0.95
HORIZONS_S = {"all reached": None, "34 s": 34.0, "26 s": 26.0, "14 s": 14.0}


def times(rng: np.random.Generator, pairs: int) -> np.ndarray:
    """Return the seconds of both variants, shape (2, pairs)."""
    shared, own = rng.normal(size=pairs), rng.normal(size=(2, pairs))
    logs = np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * own
    return np.asarray(np.array(MEDIANS_S)[:, None] * np.exp(SIGMA * logs))


def mean_up_to(median_s: float, horizon_s: float | None) -> float:
    """Return the mean of min(time, horizon) in closed form."""
    whole = median_s * np.exp(SIGMA**2 / 2)
    if horizon_s is None:
        return float(whole)
    at = np.log(horizon_s / median_s) / SIGMA
    return float(whole * stats.norm.cdf(at - SIGMA) + horizon_s * stats.norm.sf(at))


def fixed(rng: np.random.Generator, studies: int, pairs: int, horizon_s: float | None) -> tuple[float, float, float]:
    """Return how often the interval holds, that of the ratio does, and how often it is refused."""
    truth = mean_up_to(MEDIANS_S[1], horizon_s) - mean_up_to(MEDIANS_S[0], horizon_s)
    held: list[float] = []
    ratios: list[float] = []
    refused = 0
    for _ in range(studies):
        value = times(rng, pairs)
        reached = value <= (horizon_s or np.inf)
        far = np.full(value.shape, horizon_s or np.inf)
        found = paired(Sample(np.minimum(value, far), reached, far), LEVEL, horizon_s, "s")
        refused += bool(found.refused)
        if not found.refused:
            held.append(found.interval.low <= truth <= found.interval.high)
            ratios.append(found.ratio_interval.low <= MEDIANS_S[1] / MEDIANS_S[0] <= found.ratio_interval.high)
    return float(np.mean(held or [np.nan])), float(np.mean(ratios or [np.nan])), refused / studies


def until(rng: np.random.Generator, studies: int, first: int, share: float) -> tuple[float, float, float]:
    """Return how often the interval holds after the spread of a first block, and after a narrow one; mean pairs."""
    truth = mean_up_to(MEDIANS_S[1], None) - mean_up_to(MEDIANS_S[0], None)
    held, lucky, counts = [], [], []
    for _ in range(studies):
        value = times(rng, 400)
        width = share * value[0, :first].mean()
        differences = value[1] - value[0]
        count = min(400, max(2 * first, pairs_needed(differences[:first], width, LEVEL)))
        counts.append(count)
        held.append(_holds(differences[:count], truth))
        n = np.arange(1, 401)
        squares = np.cumsum(differences**2) - np.cumsum(differences) ** 2 / n
        half = stats.t.ppf((1 + LEVEL) / 2, n[1:] - 1) * np.sqrt(squares[1:] / (n[1:] - 1) / n[1:])
        narrow = np.flatnonzero(half[first - 2 :] <= width)
        lucky.append(_holds(differences[: first + narrow[0] if narrow.size else 400], truth))
    return float(np.mean(held)), float(np.mean(lucky)), float(np.mean(counts))


def _holds(values: np.ndarray, truth: float) -> bool:
    low, high = t_interval(values, LEVEL)
    return low <= truth <= high


def main() -> None:
    studies, rng = sizes(__file__, __doc__, writes=False, studies=1000).studies, np.random.default_rng(1)
    rows: list[list[object]] = []
    for (name, horizon_s), pairs in product(HORIZONS_S.items(), (5, 10, 20)):
        held, ratio, refused = fixed(rng, studies, pairs, horizon_s)
        rows.append([name, pairs, f"{held:.1%}", "-" if horizon_s else f"{ratio:.1%}", f"{refused:.1%}"])
    table(["horizon", "pairs", "holds", "ratio", "refused"], rows)
    print()
    rows = []
    for share, first in product((0.05, 0.1), (5, 10, 20)):
        held, lucky, count = until(rng, studies, first, share)
        rows.append([f"{share:.0%}", first, f"{held:.1%}", f"{lucky:.1%}", f"{count:.1f}"])
    table(["until within", "first", "holds", "narrow", "pairs"], rows)


if __name__ == "__main__":
    main()
