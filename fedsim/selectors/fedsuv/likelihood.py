"""Length scale and noise of FedSUV's utility process, by the marginal likelihood of all utilities so far.

Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, section 5.4.1. Observations at one client are
pooled: the likelihood of n of them is that of their mean, with noise variance ``noise^2 / n``, times that of their
deviations from it.
"""

import math
from typing import Final

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import Bounds, minimize

from fedsim.arrays import FloatArray
from fedsim.selectors.fedsuv.features import KernelName, covariance, median_distance

_CLIENTS: Final = 128
"""Largest number of clients whose utilities are in the likelihood."""
_LENGTHS: Final = (0.05, 1.0)
"""Least and greatest length scale, over the clients' median distance; a longer one describes a common level."""
_NOISES: Final = (0.02, 5.0)
"""Least and greatest standard deviation of one utility, over that of the prior."""
_AMPLITUDES: Final = (0.1, 2.0)
"""Least and greatest standard deviation of a client's utility from the common level, over that of the prior."""
_STARTS: Final = ((1.0, 0.1, 0.7), (1.0, 1.0, 0.7), (0.2, 0.5, 0.7), (0.5, 0.5, 0.7))
"""Length scales (over the median distance), noises and amplitudes; the search begins at the likeliest."""


def log_likelihood(prior: FloatArray, noise: float, count: FloatArray, mean: FloatArray, within: FloatArray) -> float:
    """Return the logarithm of the density of all utilities."""
    try:
        factor = cholesky(prior + np.diag(noise**2 / count), lower=True, check_finite=False)
    except LinAlgError:
        return -math.inf
    white = solve_triangular(factor, mean, lower=True, check_finite=False)
    means = -0.5 * white @ white - np.log(np.diag(factor)).sum() - 0.5 * mean.size * math.log(2 * math.pi)
    single = 0.5 * np.sum((count - 1) * math.log(2 * math.pi * noise**2) + np.log(count) + within / noise**2)
    return float(means - single)


def likeliest(
    scaled: FloatArray, kernel: KernelName, count: FloatArray, total: FloatArray, square: FloatArray
) -> tuple[float, float]:
    """Return the length scale and the noise of greatest likelihood.

    The prior has mean 0 and the covariance ``1 + a^2 k``: a common level of variance 1, from which clients differ by
    the kernel k with an amplitude a that is fitted, too. Without a level the length scale would describe the mean of
    all utilities instead of their differences.
    """
    step = -(-len(scaled) // _CLIENTS)
    scaled, count, total, square = scaled[::step], count[::step], total[::step], square[::step]
    mean = total / count
    within = np.maximum(square - count * mean**2, 0.0)
    unit = median_distance(scaled)

    def loss(logarithms: FloatArray) -> float:
        length, noise, amplitude = np.exp(logarithms)
        prior = 1.0 + amplitude**2 * covariance(kernel, length * unit, scaled, scaled)
        return -log_likelihood(prior, noise, count, mean, within)

    start = min(np.log(_STARTS), key=loss)
    bounds = Bounds(*np.log([_LENGTHS, _NOISES, _AMPLITUDES]).T)
    length, noise, _ = np.exp(minimize(loss, start, method="L-BFGS-B", bounds=bounds).x)
    return float(length * unit), float(noise)
