"""What FedSUV's section 6.3 tells of runs: how fast low validity is given up, and how often Theorem 5.3 holds."""

from argparse import Namespace
from typing import Any, Final

import numpy as np
from fig6_crowd import Crowd, make_crowd
from fig6_rounds import Run, play

from fedsim.selectors import SELECTORS, Selector

FIRST_ROUNDS: Final = 100  # section 6.3 counts "the first 100 rounds"
LOW_VALIDITY: Final = 0.4  # clients below it "participated only in approximately 30 rounds"
NEAR: Final = 0.2  # distance to a Pareto-optimal client within which a selection counts as near the front


def measures(run: Run, crowd: Crowd) -> list[float]:
    """Return one row of the table, in the order of its titles."""
    low, picks = crowd.validity < LOW_VALIDITY, run.selections / run.chosen.size
    return [
        float(run.left[:FIRST_ROUNDS, low].sum(axis=0).mean()),
        float(run.left[:, low].sum(axis=0).mean()),
        float(picks[crowd.distance_to_front() <= NEAR].sum()),
        float(run.delivered.mean()),
        float(picks @ (crowd.validity * crowd.utility)),
        *crowd.regrets(run.chosen).sum(axis=1).tolist(),
    ]


def selector_of(kind: str, **settings: Any) -> Selector:
    made: Selector = SELECTORS.load(kind)(**settings)
    return made


def coverage(selector: dict[str, Any], asked: Namespace) -> float:
    """Return the share of runs in which all rectangles hold in all rounds; the features are the paper's x."""
    held = []
    for seed in range(1000, 1000 + asked.coverage_runs):
        crowd = make_crowd(asked.clients, asked.layout, "means", seed)
        held.append(play(selector_of(**selector), crowd, asked.coverage_rounds, seed).holds)
    return float(np.mean(held))
