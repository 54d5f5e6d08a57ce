"""A cubic through points that rises and falls with them (Fritsch and Butland 1984), as SciPy's ``PchipInterpolator``.

SciPy's has the same numbers; to import `scipy.interpolate` takes as long as a hundred rounds of a small crowd.
"""

import numpy as np

from fedsim.arrays import FloatArray


def monotone_cubic(x: FloatArray, y: FloatArray, at: FloatArray) -> FloatArray:
    """Return the values of the cubic at some places.

    The slope at an inner point is the harmonic mean of the slopes on both sides with weights by their lengths, and 0 at
    a local extreme; that at an end is a one-sided estimate with the direction of the nearest slope.
    """
    step, rise = x[1:] - x[:-1], y[1:] - y[:-1]
    slope = rise / step
    tangent = np.concatenate(
        [
            [_at_end(step[0], step[1], slope[0], slope[1])],
            _between(step, slope),
            [_at_end(step[-1], step[-2], slope[-1], slope[-2])],
        ]
    )
    bend = (tangent[:-1] + tangent[1:] - 2 * slope) / step
    cubic, square = bend / step, (slope - tangent[:-1]) / step - bend
    piece = np.minimum(np.searchsorted(x, at, side="right") - 1, x.size - 2)
    past = at - x[piece]
    return np.asarray(y[piece] + tangent[piece] * past + square[piece] * past**2 + cubic[piece] * (past**2 * past))


def _between(step: FloatArray, slope: FloatArray) -> FloatArray:
    """Return the tangents at the inner points, shape (n - 2,), from steps and slopes of shape (n - 1,)."""
    before, after = slope[:-1], slope[1:]
    first, second = 2 * step[1:] + step[:-1], step[1:] + 2 * step[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (first / before + second / after) / (first + second)
        return np.where((np.sign(before) == np.sign(after)) & (before != 0), 1.0 / mean, 0.0)


def _at_end(step: float, next_step: float, slope: float, next_slope: float) -> float:
    """Return the tangent at an end, from the steps and slopes nearest to it."""
    tangent = ((2 * step + next_step) * slope - step * next_slope) / (step + next_step)
    if np.sign(tangent) != np.sign(slope):
        return 0.0
    if np.sign(slope) != np.sign(next_slope) and abs(tangent) > 3 * abs(slope):
        return 3 * slope
    return tangent
