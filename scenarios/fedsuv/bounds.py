"""Do FedSUV's theorems hold? Theorems 5.1, 5.4 and 5.5 of its paper beside what is measured.

    python scenarios/fedsuv/bounds.py [--clients N] [--rounds N] [--seeds N] [--delta D]

The crowd of section 6.3 with the two expectations as features, so that validity is linear in them, and no fit. H_t,
theta_t and the largest information gain are computed here, from the cohorts alone. The paper gives gamma_T up to a
constant; here it is the gain of greedy choices over 1 - 1 / e, which the largest gain cannot exceed. A client that does
not deliver counts as a utility of 0, since the proof of Theorem 5.4 has an observation of each selected client.
It takes about two minutes of a processor.
"""

import math
from functools import partial

import numpy as np
from fig6_world import Crowd, Run, make_crowd, play
from paper_runs.command import in_words, options
from paper_runs.tables import markdown
from scipy.spatial.distance import cdist

from fedsim.arrays import FloatArray
from fedsim.selectors import FedSuv
from fedsim.selectors.fedsuv.validity import alpha_of

COHORT = 20
NOISE = 0.1
LENGTH_SCALE = 0.5
COLUMNS = 2
HEADS = ("T", "w_T, largest", "bound (15)", "twice the bound", "summed regret (5.3)", "bound (16)")
MARKS = (1, 10, 50, 100, 200, 400)


def bounds(alpha: float, beta: float, gamma: float, rounds: int, gap: float) -> tuple[float, float]:
    """Return (15) and (16) for T rounds and the least difference epsilon."""
    # alpha^2 d C_T + beta_T gamma_T C
    growth, scale = 2.0 * math.log(1.0 + rounds / COLUMNS), 2.0 / math.log(1.0 + NOISE**-2)
    total = alpha**2 * COLUMNS * growth + beta * gamma * scale
    return math.sqrt(total / rounds), 4.0 * COHORT * total / gap**2


def greedy_gain(features: FloatArray, rounds: int) -> FloatArray:
    """Return bounds of gamma_T for T = 1, 2, ...: the greedy information gain over 1 - 1 / e."""
    variance, factor = np.ones(len(features)), np.zeros((0, len(features)))
    gain = np.zeros(rounds)
    for number in range(rounds):
        widest = int(np.argmax(variance))
        gain[number] = 0.5 * math.log1p(variance[widest] / NOISE**2)
        kernel = np.exp(-(cdist(features[[widest]], features)[0] ** 2) / (2 * LENGTH_SCALE**2))
        row = (kernel - factor[:, widest] @ factor) / math.sqrt(variance[widest] + NOISE**2)
        factor = np.vstack([factor, row])
        variance = np.maximum(variance - row**2, 0.0)
    return np.cumsum(gain) / (1.0 - math.exp(-1.0))


def least_gap(crowd: Crowd) -> float:
    """Return epsilon of Theorem 5.5: the least difference in either expectation between clients ordered in both."""
    smaller = [np.subtract.outer(one, one) for one in (crowd.validity, crowd.utility)]
    both = (smaller[0] > 0) & (smaller[1] > 0)
    return float(np.minimum(*smaller)[both].min())


def condition_13(crowd: Crowd, run: Run, alpha: float) -> tuple[int, int]:
    """Return how many clients of X the condition (13) names over the rounds, and how many of them leave X then."""
    rows, gram, response = crowd.features, np.eye(COLUMNS), np.zeros(COLUMNS)
    before, named, eliminated = np.ones(crowd.validity.size, dtype=np.bool_), 0, 0
    for chosen, delivered, left in zip(run.chosen, run.delivered, run.left, strict=True):
        norm = np.sqrt(np.einsum("ni,ij,nj->n", rows, np.linalg.inv(gram), rows))
        low = rows @ np.linalg.solve(gram, response) - alpha * norm
        first = np.argmax(np.where(before, low, -np.inf))
        out = before & (crowd.validity <= crowd.validity[first] - 2 * alpha * (norm[first] + norm))
        named += int(np.count_nonzero(out))
        eliminated += int(np.count_nonzero(out & ~left))
        gram += rows[chosen].T @ rows[chosen]
        response += delivered @ rows[chosen]
        before = left
    return named, eliminated


def main() -> None:
    asked = options(__doc__, clients=2500, rounds=400, seeds=5, delta=0.1).parse_args()
    crowd = make_crowd(asked.clients, "grid", "means", 0)
    gamma = greedy_gain(crowd.features, asked.rounds)
    gap, alpha = least_gap(crowd), alpha_of(asked.delta)
    exact = partial(FedSuv, scaling="none", noise=NOISE, length_scale=LENGTH_SCALE, fit="none", utility_scale=1.0)
    selector = partial(exact, COHORT, delta=asked.delta)
    runs = [play(selector(rho=0.4), crowd, asked.rounds, seed) for seed in range(asked.seeds)]
    widths = np.max([run.width for run in runs], axis=0)
    regrets = np.mean([np.cumsum(crowd.regrets(run.chosen)[0]) for run in runs], axis=0)
    rows = []
    for mark in (mark for mark in MARKS if mark <= asked.rounds):
        beta = 2.0 * math.log(asked.clients * (math.pi * mark) ** 2 / (3.0 * asked.delta))
        width, regret = bounds(alpha, beta, float(gamma[mark - 1]), mark, gap)
        measured = f"{widths[mark - 1]:.2f}", f"{max(regrets[mark - 1], 0.0):.2f}"
        rows.append([f"{mark}", measured[0], f"{width:.2f}", f"{2 * width:.2f}", measured[1], f"{regret:.3g}"])
    print(markdown(HEADS, rows))
    # With the paper's rho of 0.4 elimination ends before (13) holds for any client.
    ever = (play(selector(rho=1.0), crowd, asked.rounds, seed) for seed in range(asked.seeds))
    named, eliminated = np.sum([condition_13(crowd, run, alpha) for run in ever], axis=0)
    print(f"Theorem 5.1, rho = 1: (13) names {named} clients of X, of which {eliminated} leave it in that round")


if __name__ == "__main__":
    in_words(main)
