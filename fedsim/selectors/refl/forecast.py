"""A seasonal forecast of clients' availability, fitted to the candidates of past selections.

In REFL every client trains a linear seasonal model (Prophet) of its own charging log and answers with a probability. A
server does not have these logs; it knows the candidates of each selection. A model of the same kind is fitted to this
record of each client: a mean and Fourier terms of the time of day, by ridge regression.

All clients are observed at the same instants, so that they share one matrix of normal equations and have one vector
each. At an instant without knowledge of a client (it is in flight) the observation is the forecast of its own model,
which leaves its coefficients exactly unchanged.
"""

import numpy as np

from fedsim.arrays import FloatArray, IntArray


class SeasonalForecast:
    """Probabilities of availability, by ridge regression on Fourier terms; 0.5 without observations."""

    def __init__(self, periods_s: list[float], harmonics: int, ridge: float) -> None:
        order = np.arange(1, harmonics + 1)
        self._per_s = np.concatenate([order / period_s for period_s in periods_s])
        terms = 1 + 2 * self._per_s.size
        self._normal = ridge * np.eye(terms)
        self._moment: FloatArray = np.zeros((terms, 0))
        self._last_s = -np.inf

    def learn(self, time_s: float, clients: int, available: IntArray, unknown: IntArray) -> None:
        """Add the observation of an instant; a second one at the same instant is ignored."""
        missing = clients - self._moment.shape[1]
        if missing > 0:
            self._moment = np.pad(self._moment, ((0, 0), (0, missing)))
        if time_s <= self._last_s:
            return
        self._last_s = time_s
        term = self._terms(time_s, time_s)
        seen = np.full(self._moment.shape[1], -0.5)
        seen[available] = 0.5
        seen[unknown] = np.linalg.solve(self._normal, term) @ self._moment[:, unknown]
        for row, factor in enumerate(term.tolist()):
            self._moment[row] += factor * seen
        self._normal += np.outer(term, term)

    def probability(self, client: IntArray, from_s: float, until_s: float) -> FloatArray:
        """Return the mean forecast of each client over a slot in seconds, clipped to [0, 1], shape of ``client``."""
        weight = np.linalg.solve(self._normal, self._terms(from_s, until_s))
        return np.clip(0.5 + (weight @ self._moment)[client], 0.0, 1.0)

    def _terms(self, from_s: float, until_s: float) -> FloatArray:
        """Return the means of 1 and of the Fourier terms over a slot, which may be an instant; shape (terms,)."""
        angle = np.pi * self._per_s * (from_s + until_s)
        damping = np.sinc(self._per_s * (until_s - from_s))
        return np.concatenate([[1.0], damping * np.cos(angle), damping * np.sin(angle)])
