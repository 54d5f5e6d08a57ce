"""Bounds of probabilities from counts, and of distribution functions from samples."""

import math

from scipy import stats


def share_bounds(count, size, level=1e-7):
    """Return the Clopper-Pearson bounds of a probability: each is wrong with probability ``level`` at most."""
    lower = stats.beta.ppf(level, count, size - count + 1) if count else 0.0
    return lower, stats.beta.isf(level, count + 1, size - count) if count < size else 1.0


def dkw(number, level=1e-6):
    """Return the Dvoretzky-Kiefer-Wolfowitz bound: a sample is farther from its law with probability ``level``."""
    return math.sqrt(math.log(2 / level) / (2 * number))
