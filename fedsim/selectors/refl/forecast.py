"""A seasonal forecast of who will be there, fitted to whom the server has seen.

REFL has every client train a linear seasonal model (Prophet) of its own charging log and answer with a probability. A
simulated server does not get these logs; it sees at each selection who is a candidate and who is not. To this record of
each client the same kind of model is fitted: a mean and Fourier terms of the time of day, by ridge regression.

All clients are seen at the same times, so that they share one matrix of normal equations and differ by a vector each.
An instant at which nothing is known of a client (it is at work) enters with what its own model says of that instant,
which leaves its coefficients exactly as they are.
"""

import numpy as np

from fedsim.arrays import FloatArray, IntArray


class SeasonalForecast:
    """Probabilities of being there, by ridge regression on Fourier terms; a client never seen has 0.5.

    Parameters
    ----------
    periods_s : floats > 0, periods in seconds
    harmonics : int >= 1, sine and cosine terms of each period
    ridge : float > 0
        Weight of the prior, in observations: coefficients are drawn to a constant 0.5.
    """

    def __init__(self, periods_s: list[float], harmonics: int, ridge: float) -> None:
        order = np.arange(1, harmonics + 1)
        self._per_s = np.concatenate([order / period_s for period_s in periods_s])
        terms = 1 + 2 * self._per_s.size
        self._normal = ridge * np.eye(terms)
        self._moment: FloatArray = np.zeros((terms, 0))
        self._last_s = -np.inf

    def learn(self, time_s: float, clients: int, there: IntArray, unknown: IntArray) -> None:
        """Take in whom the server sees at an instant; a second look at the same instant is passed over.

        Parameters
        ----------
        time_s : the instant
        clients : number of clients K
        there : ids of those that are there
        unknown : ids of those of which the server cannot tell; all others are away
        """
        missing = clients - self._moment.shape[1]
        if missing > 0:
            self._moment = np.pad(self._moment, ((0, 0), (0, missing)))
        if time_s <= self._last_s:
            return
        self._last_s = time_s
        term = self._terms(time_s, time_s)
        seen = np.full(self._moment.shape[1], -0.5)
        seen[there] = 0.5
        seen[unknown] = np.linalg.solve(self._normal, term) @ self._moment[:, unknown]
        for row, factor in enumerate(term.tolist()):
            self._moment[row] += factor * seen
        self._normal += np.outer(term, term)

    def probability(self, client: IntArray, from_s: float, until_s: float) -> FloatArray:
        """Return the mean forecast of each client over a slot of time, cut to [0, 1]."""
        weight = np.linalg.solve(self._normal, self._terms(from_s, until_s))
        return np.clip(0.5 + (weight @ self._moment)[client], 0.0, 1.0)

    def _terms(self, from_s: float, until_s: float) -> FloatArray:
        """Return the means of 1 and of the Fourier terms over a slot, which may be an instant."""
        angle = np.pi * self._per_s * (from_s + until_s)
        damping = np.sinc(self._per_s * (until_s - from_s))
        return np.concatenate([[1.0], damping * np.cos(angle), damping * np.sin(angle)])
