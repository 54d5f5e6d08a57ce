"""A policy played beside its Genie: sums of what it loses in each round, their means over seeds, and fits to these."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
from genie_settings import EVERY, Setting
from scipy import stats

from fedsim.arrays import FloatArray
from fedsim.selectors import Pause, Selector, Uniform
from fedsim.selectors.pause.sa_pause import SaPause

MARKS: Final = (10, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
REGRET, MEASURE, SHORT, GENIES = SUMS = (
    *("regret (15)", "by the Genie's measure", "reward (9) short of the best set's", "the same of the Genie's set"),
)
ANNEALED: Final = partial(SaPause, iterations=300, kappa=1.0)
POLICIES: Final[dict[str, Callable[..., Selector]]] = {
    "PAUSE": Pause,
    "SA-PAUSE, warm start": partial(ANNEALED, start="last"),
    "SA-PAUSE": ANNEALED,
    "uniform": lambda cohort, *_: Uniform(cohort),
}
SHAPES: Final[dict[str, Callable[[FloatArray], FloatArray]]] = {"log n": np.log, "sqrt n": np.sqrt, "n": np.positive}
Run = Mapping[str, FloatArray]
"""Sums of one run from the first round on, by name."""
Runs = Mapping[str, Sequence[Run]]
"""The runs of each policy, seed by seed."""


def follow(setting: Setting, policy: Selector, rounds: int, seed: int) -> Run:
    """Play a policy and ask the Genie in every round what it would have done."""
    genie, rng, rows = setting.genie, np.random.default_rng(seed), list[tuple[float, ...]]()
    smallest = setting.crowd.expected_smallest(EVERY)
    for view, members in setting.crowd.play(policy, rounds, seed):
        terms = genie.terms(view)
        best = genie.search(terms, rng)
        reward = smallest + terms.bonus[EVERY].sum(axis=1)
        own, could = (reward[(one == EVERY).all(axis=1)].item() for one in (members, best))
        lost, most = terms.energy(best) - terms.energy(members), float(reward.max())
        rows.append((could - own, lost, most - own, most - could))
    return dict(zip(SUMS, np.cumsum(rows, axis=0).T, strict=True))


def mean_and_error(runs: Sequence[Run], of: str) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard error of a sum over the seeds; the error of one seed is 0."""
    curves = np.array([run[of] for run in runs])
    return curves.mean(axis=0), stats.sem(curves, axis=0) if len(runs) > 1 else np.zeros(curves.shape[1])


def fit(n: FloatArray, curve: FloatArray, shape: str) -> tuple[FloatArray, float]:
    """Return ``a + b shape(n)`` fitted to the last nine tenths of the rounds, and the share of variance it leaves."""
    late, x = n >= n[-1] / 10, SHAPES[shape](n)
    line = stats.linregress(x[late], curve[late])
    return line.intercept + line.slope * x, 1.0 - line.rvalue**2
