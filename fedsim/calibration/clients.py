"""How clients differ: each has a centre on the scale of logarithms, around which its times scatter.

Where times were cut short, the mean of what they would have been is used (a Tobit model, expectation maximisation).
"""

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray

By = Literal["crowd", "class", "client"]
_STEPS: Final = 200
_CONVERGED: Final = 1e-7
_SIGNIFICANT: Final = 0.01
_LARGEST_SIGMA: Final = 10.0
_SAME: Final = 1e-9
"""Spread below which times differ by the rounding of a clock alone."""


@dataclass(frozen=True)
class Effects:
    factor: FloatArray
    spread_sigma: float
    spread_error: float
    noise_sigma: float
    drawn_s: FloatArray
    centre: FloatArray
    significant: bool


def effects(times_s: FloatArray, cut: BoolArray, client: IntArray, group: IntArray, clients: int, by: By) -> Effects:
    """Return how times split into factors of clients and draws from one law."""
    present, row = np.unique(client, return_inverse=True)
    count = np.bincount(row)
    one = np.ones(clients)
    if times_s.min() <= 0 or times_s.size - present.size < 2:
        return Effects(one, 0.0, 0.0, 0.0, times_s, 0.0 * one, significant=False)
    logs = np.log(times_s)
    centre, noise = _centres(logs, cut, row)
    centres = np.full(clients, centre.mean())
    centres[present] = centre
    between, significant, error = _between(logs, cut, row, np.zeros(present.size, dtype=np.int64))
    if not significant:
        return Effects(one, 0.0, error, noise, times_s, centres, significant=False)
    # Around a mean of n times they scatter less than around the centre itself.
    wider = np.sqrt(count / np.maximum(count - 1, 1))[row]
    grand = float(centre.mean())
    drawn_s = np.exp(grand + (logs - centre[row]) * wider)
    factor = one.copy()
    if by == "client":
        factor[present] = np.exp(centre - grand)
        return Effects(factor, 0.0, 0.0, noise, drawn_s, centres, significant=True)
    if by == "class":
        of_group = np.zeros(present.size, dtype=np.int64)
        of_group[row] = group
        means = np.bincount(of_group, centre) / np.maximum(np.bincount(of_group), 1)
        factor[present] = np.exp(means[of_group] - grand)
        between, within_classes, error = _between(logs, cut, row, of_group)
        if not within_classes:
            return Effects(factor, 0.0, error, noise, times_s / factor[client], centres, significant=True)
    spread = min(math.sqrt(between), _LARGEST_SIGMA)
    return Effects(factor, spread, error, noise, drawn_s, centres, significant=True)


def _centres(logs: FloatArray, cut: BoolArray, row: IntArray) -> tuple[FloatArray, float]:
    """Return the centre of each client, shape (k,), and the scatter around the centres."""
    count = np.bincount(row)
    free = logs.size - count.size
    centre = np.bincount(row, logs) / count
    square = float(np.square(logs - centre[row]).sum())
    for _ in range(_STEPS if cut.any() and square > 0 else 0):
        sigma, before = math.sqrt(square / free), centre
        expected, known = _expected(logs, cut, centre[row], sigma)
        centre = np.bincount(row, expected) / count
        square = float(np.square(expected - centre[row]).sum() + sigma**2 * (1 - known).sum())
        if np.abs(centre - before).max() < _CONVERGED:
            break
    return centre, math.sqrt(square / free)


def _expected(logs: FloatArray, cut: BoolArray, centre: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray]:
    """Return the mean of what each time would have been, and what it tells of the centre as a share of a whole one."""
    from scipy.stats import norm

    expected, known = logs.copy(), np.ones(logs.size)
    if cut.any() and sigma > 0:
        beyond = (logs[cut] - centre[cut]) / sigma
        # Mean and variance of a normal number that is known to be larger.
        hazard = np.exp(norm.logpdf(beyond) - norm.logsf(beyond))
        expected[cut] = centre[cut] + sigma * hazard
        known[cut] = hazard * (hazard - beyond)
    return expected, known


def _between(logs: FloatArray, cut: BoolArray, row: IntArray, group: IntArray) -> tuple[float, bool, float]:
    """Return the variance of centres within classes, whether it is above 0, and the error of its root."""
    from scipy.stats import f

    of_row = np.unique(group, return_inverse=True)[1][row]
    count, of_group = np.bincount(row), np.bincount(of_row)
    free, within = count.size - of_group.size, logs.size - count.size
    if free < 1 or within < 1:
        return 0.0, False, 0.0
    # Of a law for each class alone: a client all of whose times were cut has a score, and no centre of its own.
    centre, sigma = _centres(logs, cut, of_row)
    expected, known = _expected(logs, cut, centre[of_row], sigma)
    score = (expected - centre[of_row]) / known.mean()
    means = np.bincount(row, score) / count
    noise = float(np.square(score - means[row]).sum()) / within
    mean_square = float((count * np.square(means)).sum()) / free
    chance = f.sf(mean_square / noise, free, within) if noise > 0 else float(mean_square == 0)
    squares = np.bincount(of_row, count[row]) / of_group
    each = (count.sum() - squares.sum()) / free
    between = max((mean_square - noise) / each, 0.0)
    error = math.sqrt(2 / free) * (between + noise / each) / (2 * math.sqrt(between)) if between > 0 else 0.0
    return between, bool(chance < _SIGNIFICANT) and between > _SAME**2, error
