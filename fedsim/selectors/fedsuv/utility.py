"""FedSUV's utility: a Gaussian process over the clients, with pooled observations and incremental updates.

The paper takes mean and standard deviation of the posterior from a Gaussian process (section 4.3); kernel, noise and
computation are left open. Libraries solve for all pooled observations in each round, here the cost of a round does not
grow with the clients seen.

Length scale and noise of FedSUV's utility process, by the marginal likelihood of all utilities so far.

Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, section 5.4.1. Observations at one client are
pooled: the likelihood of n of them is that of their mean, with noise variance ``noise^2 / n``, times that of their
deviations from it.
"""

import math
from typing import Final

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import Bounds, minimize

from fedsim.arrays import FloatArray, IntArray
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


class UtilityProcess:
    """The posterior of all clients' utilities.

    A client's utility is ``phi . w`` plus a remainder of its own, with w standard normal of m dimensions; phi and the
    remainders' variances r come from a `Basis`. Variances are in units of the prior's, which may be set later: the
    posterior mean is linear in the observations and does not depend on the prior's variance.

    Observations at one client are pooled: n of them with mean y count as one with noise variance ``noise^2 / n``. A
    client then adds ``phi phi' / (r + noise^2 / n)`` to the precision of w, and a further observation changes the
    fraction only. An update of the covariance C of w by k clients takes one Cholesky factor of k rows; the variances
    ``phi' C phi`` follow by one product, O(K m k) for K clients. For k > m a new solution of all pooled observations,
    O(K m^2), is cheaper.
    """

    def __init__(self, clients: int, basis: int, noise: float) -> None:
        self.noise = noise
        self.count = np.zeros(clients)
        self.total = np.zeros(clients)
        self.square = np.zeros(clients)
        self._coordinates = np.zeros((clients, basis))
        self._remainder = np.zeros(clients)
        self._covariance = np.eye(basis)
        self._response = np.zeros(basis)
        self._mean = np.zeros(clients)
        self._variance = np.zeros(clients)

    def place(self, client: IntArray, coordinates: FloatArray, remainder: FloatArray) -> None:
        """Set coordinates, shape (n, m), and remainders, shape (n,), of clients without observations."""
        self._coordinates[client] = coordinates
        self._remainder[client] = remainder
        spread = coordinates @ self._covariance if np.any(self.count) else coordinates
        self._mean[client] = spread @ self._response
        self._variance[client] = np.einsum("nm,nm->n", spread, coordinates)

    def observe(self, client: IntArray, value: FloatArray) -> None:
        """Add one observation for each id; ids may occur more than once. Shapes (n,)."""
        if not client.size:
            return
        client, place = np.unique(client, return_inverse=True)
        before, known = self._weights(client)
        self.count[client] += np.bincount(place)
        self.total[client] += np.bincount(place, value)
        self.square[client] += np.bincount(place, value**2)
        if client.size > self._response.size:
            self.observe_pooled(self.count, self.total, self.square)
            return
        after, now = self._weights(client)
        rows = self._coordinates[client]
        seen = rows @ self._covariance
        factor = cholesky(np.diag(1.0 / (after - before)) + seen @ rows.T, lower=True, check_finite=False)
        change = solve_triangular(factor, seen, lower=True, check_finite=False)
        self._covariance -= change.T @ change
        self._response += rows.T @ (now - known)
        directions = np.concatenate([change, (self._covariance @ self._response)[None]])
        projected = self._coordinates @ directions.T
        self._mean = projected[:, -1]
        self._variance -= np.einsum("nk,nk->n", projected[:, :-1], projected[:, :-1])

    def observe_pooled(self, count: FloatArray, total: FloatArray, square: FloatArray) -> None:
        """Set all observations: number, sum and sum of squares for each client of the crowd, shapes (K,)."""
        self.count, self.total, self.square = count.copy(), total.copy(), square.copy()
        seen = np.flatnonzero(count)
        weights, response = self._weights(seen)
        rows = self._coordinates[seen]
        precision = np.eye(rows.shape[1]) + (rows * weights[:, None]).T @ rows
        self._covariance = cho_solve(cho_factor(precision, lower=True), np.eye(rows.shape[1]))
        self._response = rows.T @ response
        self._mean = self._coordinates @ (self._covariance @ self._response)
        self._variance = np.einsum("nm,nm->n", self._coordinates @ self._covariance, self._coordinates)

    def posterior(self, client: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return means (unit of the observations) and standard deviations (units of the prior's), shapes (n,)."""
        count, rest, noise = self.count[client], self._remainder[client], self.noise**2
        share = rest * count / (rest * count + noise)
        average = self.total[client] / np.maximum(count, 1.0)
        mean = self._mean[client] + share * (average - self._mean[client])
        spread = np.maximum(self._variance[client], 0.0)
        variance = (1.0 - share) ** 2 * spread + rest * noise / (rest * count + noise)
        return mean, np.sqrt(variance)

    def covariances(self, one: int, client: IntArray) -> FloatArray:
        """Return the covariances of one client's utility with others', in units of the prior's variance, shape (n,)."""
        ids = np.append(client, one)
        rest = self._remainder[ids]
        left = self.noise**2 / (rest * self.count[ids] + self.noise**2)
        found = left[-1] * left[:-1] * (self._coordinates[client] @ (self._covariance @ self._coordinates[one]))
        return np.asarray(np.where(client == one, found + rest[:-1] * left[:-1], found))

    def _weights(self, client: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return each client's part of the precision, ``n / (r n + noise^2)``, and that times its mean."""
        denominator = self._remainder[client] * self.count[client] + self.noise**2
        return self.count[client] / denominator, self.total[client] / denominator
