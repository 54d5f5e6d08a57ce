"""Division of a client's privacy budget among its uploads.

A budget policy fixes a sequence epsilon_1, epsilon_2, ... whose sum is finite: under any selection,
no client ever leaks more than that sum (Peleg, Lang, Rini, Shlezinger and Cohen,
"PAUSE: Low-Latency and Privacy-Aware Active User Selection for Federated Learning", section III-A, equation 6).
"""

from typing import Annotated, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from fedsim.answers import Contract, Number, Numbers, same_shape
from fedsim.registry import Component, Registry


class Budget(Protocol):
    """A sequence of costs of the releases of one client."""

    @property
    def total(self) -> float:
        """Largest epsilon that a client can spend, over any number of releases."""
        ...

    def term(self, i: ArrayLike) -> NDArray[np.float64]:
        """Return the epsilon that the i-th release costs, of the shape of ``i``; i is from 1."""
        ...

    def leaked(self, n: ArrayLike) -> NDArray[np.float64]:
        """Return the sum of the first n terms, of the shape of ``n``, never above ``total``."""
        ...


BUDGET: Final = Contract(
    "privacy budget",
    Budget,
    {
        "total": Number(least=0, above=True),
        "term": Numbers(same_shape("i"), least=0),
        "leaked": Numbers(same_shape("n"), least=0),
    },
)


class GeometricBudget(Component):
    """A budget spent in geometrically falling terms: each release is noisier than the one before.

    The i-th release costs ``epsilon (e^eta - 1) e^(-eta i)``; n releases leak ``epsilon (1 - e^(-eta n))``,
    which tends to ``epsilon`` from below (PAUSE, after equation 6).

    Attributes
    ----------
    epsilon : sum of all terms (the paper's epsilon-bar)
    eta : rate at which the terms fall; 0.04 in the paper's runs, where 50 releases leak 86.5 % of the budget
    """

    epsilon: Annotated[float, Field(gt=0)]
    eta: Annotated[float, Field(gt=0)] = 0.04

    @property
    def total(self) -> float:
        """Largest epsilon that a client can spend: ``epsilon``."""
        return self.epsilon

    def term(self, i: ArrayLike) -> NDArray[np.float64]:
        """Return the epsilon that the i-th release costs, of the shape of ``i``.

        Late terms fall below the smallest float and are 0 (from about ``745 / eta`` on).

        Raises
        ------
        ValueError
            If an index is below 1.
        """
        index = _counts("i", i, lowest=1)
        return np.asarray(self.epsilon * -np.expm1(-self.eta) * np.exp(-self.eta * (index - 1.0)))

    def leaked(self, n: ArrayLike) -> NDArray[np.float64]:
        """Return the epsilon that n releases cost together, of the shape of ``n``; 0 for none.

        A closed form, not a running sum, so that rounding never carries it above ``epsilon``.

        Raises
        ------
        ValueError
            If a number is below 0.
        """
        return np.asarray(self.epsilon * -np.expm1(-self.eta * _counts("n", n, lowest=0)))


def _counts(name: str, values: ArrayLike, lowest: int) -> NDArray[np.float64]:
    counts = np.asarray(values, dtype=np.float64)
    if not np.all(counts >= lowest):
        raise ValueError(f"{name}: {values!r} is not allowed; it must be at least {lowest}")
    return counts


BUDGETS: Final = Registry(
    "privacy budget",
    "fedsim.budgets",
    ("term", "leaked"),
    {"geometric": "fedsim.privacy.budget:GeometricBudget"},
)
