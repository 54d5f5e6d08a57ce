"""How often the intervals of a study hold the truth: simulated studies whose difference is known.

    python tests/benchmarks/study_coverage.py [--studies N]

Times to a target are log-normal, with medians of 30 s and 24 s and a correlation of 0.8 within a pair. A horizon of
34 s leaves 35 % and 14 % of the runs without a target.
"""

import argparse
from itertools import product

import numpy as np
from scipy import stats

from fedsim.studies.comparing.pairs import Sample, paired, t_interval
from fedsim.studies.questions.enough import pairs_needed

MEDIANS_S, SIGMA, CORRELATION = np.array([30.0, 24.0]), 0.325, 0.8
LEVEL = 0.95
HORIZONS_S = {"all reached": np.inf, "34 s": 34.0, "26 s": 26.0, "14 s": 14.0}


def times(rng: np.random.Generator, pairs: int) -> np.ndarray:
    """Return the seconds of both variants, shape (2, pairs)."""
    shared, own = rng.normal(size=pairs), rng.normal(size=(2, pairs))
    logs = np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * own
    return np.asarray(MEDIANS_S[:, None] * np.exp(SIGMA * logs))


def truth(horizon_s: float) -> float:
    """Return the difference of the means of min(time, horizon) in closed form."""
    means_s = MEDIANS_S * np.exp(SIGMA**2 / 2)
    if np.isfinite(horizon_s):
        at = np.log(horizon_s / MEDIANS_S) / SIGMA
        means_s = means_s * stats.norm.cdf(at - SIGMA) + horizon_s * stats.norm.sf(at)
    return float(means_s[1] - means_s[0])


def fixed(rng: np.random.Generator, studies: int, pairs: int, horizon_s: float) -> tuple[float, float, float]:
    """Return how often the interval holds, that of the ratio does, and how often it is refused."""
    named = horizon_s if np.isfinite(horizon_s) else None
    held, ratio = [], MEDIANS_S[1] / MEDIANS_S[0]
    for _ in range(studies):
        value = times(rng, pairs)
        sample = Sample(np.minimum(value, horizon_s), value <= horizon_s, np.full(value.shape, horizon_s))
        found = paired(sample, LEVEL, named, "s")
        if not found.refused:
            of, times_as = found.interval, found.ratio_interval
            held.append((of.low <= truth(horizon_s) <= of.high, times_as.low <= ratio <= times_as.high))
    share, of_ratio = np.mean(held, axis=0) if held else (np.nan, np.nan)
    return float(share), float(of_ratio), 1 - len(held) / studies


def until(rng: np.random.Generator, studies: int, first: int, share: float) -> float:
    """Return how often the interval holds after as many pairs as the spread of a first block asks for."""
    held = []
    for _ in range(studies):
        value = times(rng, 400)
        differences, width = value[1] - value[0], share * value[0, :first].mean()
        pairs = min(400, max(2 * first, pairs_needed(differences[:first], width, LEVEL)))
        low, high = t_interval(differences[:pairs], LEVEL)
        held.append(low <= truth(np.inf) <= high)
    return float(np.mean(held))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--studies", type=int, default=1000, help="of each row")
    studies, rng = parser.parse_args().studies, np.random.default_rng(1)
    print("horizon      pairs   holds   ratio  refused")
    for (name, horizon_s), pairs in product(HORIZONS_S.items(), (5, 10, 20)):
        held, ratio, refused = fixed(rng, studies, pairs, horizon_s)
        shown = "-" if np.isfinite(horizon_s) else f"{ratio:.1%}"
        print(f"{name:11}{pairs:>7}{held:8.1%}{shown:>8}{refused:9.1%}")
    print("\nuntil within  first   holds")
    for share, first in product((0.05, 0.1), (5, 10, 20)):
        print(f"{share:12.0%}{first:7}{until(rng, studies, first, share):8.1%}")


if __name__ == "__main__":
    main()
