"""What FedSUV's theorems say of a crowd: condition (13) of 5.1, the bounds (15) and (16) of 5.4 and 5.5."""

import math
from typing import Final

import numpy as np
from fig6_crowd import Crowd
from fig6_rounds import Run
from scipy.spatial.distance import cdist

from fedsim.arrays import FloatArray

COHORT: Final = 20
NOISE: Final = 0.1
LENGTH_SCALE: Final = 0.5
COLUMNS: Final = 2


def bounds(alpha: float, beta: float, gamma: float, rounds: int, gap: float) -> tuple[float, float]:
    """Return (15) and (16) for T rounds and the least difference epsilon."""
    # alpha^2 d C_T + beta_T gamma_T C
    growth, scale = 2.0 * math.log(1.0 + rounds / COLUMNS), 2.0 / math.log(1.0 + NOISE**-2)
    total = alpha**2 * COLUMNS * growth + beta * gamma * scale
    return math.sqrt(total / rounds), 4.0 * COHORT * total / gap**2


def greedy_gain(features: FloatArray, rounds: int) -> FloatArray:
    """Return bounds of gamma_T for T = 1, 2, ...: the greedy information gain over 1 - 1 / e."""
    variance, factor, gain = np.ones(len(features)), np.zeros((0, len(features))), np.zeros(rounds)
    for number in range(rounds):
        widest = int(np.argmax(variance))
        gain[number] = 0.5 * math.log1p(variance[widest] / NOISE**2)
        kernel = np.exp(-(cdist(features[[widest]], features)[0] ** 2) / (2 * LENGTH_SCALE**2))
        row = (kernel - factor[:, widest] @ factor) / math.sqrt(variance[widest] + NOISE**2)
        factor, variance = np.vstack([factor, row]), np.maximum(variance - row**2, 0.0)
    return np.cumsum(gain) / (1.0 - math.exp(-1.0))


def least_gap(crowd: Crowd) -> float:
    """Return epsilon of Theorem 5.5: the least difference in either expectation between clients ordered in both."""
    least = np.minimum(*(np.subtract.outer(one, one) for one in (crowd.validity, crowd.utility)))
    return float(least[least > 0].min())


def condition_13(crowd: Crowd, run: Run, alpha: float) -> tuple[int, int]:
    """Return how many clients of X the condition (13) names over the rounds, and how many of them leave X then."""
    rows, gram, response = crowd.features, np.eye(COLUMNS), np.zeros(COLUMNS)
    before, named, eliminated = np.ones(crowd.validity.size, dtype=np.bool_), 0, 0
    for chosen, delivered, left in zip(run.chosen, run.delivered, run.left, strict=True):
        norm = np.sqrt(np.einsum("ni,ij,nj->n", rows, np.linalg.inv(gram), rows))
        low = rows @ np.linalg.solve(gram, response) - alpha * norm
        first = np.argmax(np.where(before, low, -np.inf))
        out = before & (crowd.validity <= crowd.validity[first] - 2 * alpha * (norm[first] + norm))
        named, eliminated = named + int(np.count_nonzero(out)), eliminated + int(np.count_nonzero(out & ~left))
        gram += rows[chosen].T @ rows[chosen]
        response += delivered @ rows[chosen]
        before = left
    return named, eliminated
