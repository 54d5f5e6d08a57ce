"""Division of a client's privacy budget among its uploads.

A budget policy fixes a sequence epsilon_1, epsilon_2, ... whose sum is finite: under any selection,
no client ever leaks more than that sum (Peleg, Lang, Rini, Shlezinger and Cohen,
"PAUSE: Low-Latency and Privacy-Aware Active User Selection for Federated Learning", section III-A, equation 6).
`UnlimitedBudget` alone has no finite sum. A term of 0 pays for no update: a client whose next term is 0 is no
candidate any more.
"""

from typing import Annotated, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from fedsim.answers import Contract, Number, Numbers, same_shape
from fedsim.registry import Component, Registry


class Budget(Protocol):
    """A sequence of costs of the releases of one client.

    Examples
    --------
    >>> class Halving:
    ...     total = 8.0
    ...     def term(self, i):
    ...         return self.total * 0.5 ** np.asarray(i)
    ...     def leaked(self, n):
    ...         return self.total * (1 - 0.5 ** np.asarray(n))
    >>> from fedsim.privacy import PrivacyAccountant
    >>> accountant = PrivacyAccountant(Halving(), clients=2)
    >>> accountant.charge(0), accountant.charge(0), accountant.spent.tolist()
    ((4.0, 1), (2.0, 2), [6.0, 0.0])
    """

    @property
    def total(self) -> float:
        """Largest epsilon that a client can spend, over any number of releases; `inf` without a limit."""

    def term(self, i: ArrayLike) -> NDArray[np.float64]:
        """Return the epsilon that the i-th release costs, of the shape of ``i``; i is from 1.

        Parameters
        ----------
        i : number of the release, from 1, any shape
        """

    def leaked(self, n: ArrayLike) -> NDArray[np.float64]:
        """Return the sum of the first n terms, of the shape of ``n``, never above ``total``.

        Parameters
        ----------
        n : number of releases, at least 0, any shape
        """


BUDGET: Final = Contract(
    "privacy budget",
    Budget,
    {
        "total": Number(least=0, above=True, infinite=True),
        "term": Numbers(same_shape("i"), least=0),
        "leaked": Numbers(same_shape("n"), least=0),
    },
)


class _Finite(Component):
    epsilon: Annotated[float, Field(gt=0)]

    @property
    def total(self) -> float:
        return self.epsilon


class GeometricBudget(_Finite):
    """A budget spent in geometrically falling terms: each release is noisier than the one before.

    The i-th release costs ``epsilon (e^eta - 1) e^(-eta i)``; n releases leak ``epsilon (1 - e^(-eta n))``,
    which tends to ``epsilon`` from below (PAUSE, after equation 6).

    Attributes
    ----------
    epsilon : sum of all terms (the paper's epsilon-bar)
    eta : rate at which the terms fall; 0.04 in the paper's runs, where 50 releases leak 86.5 % of the budget

    Examples
    --------
    >>> budget = GeometricBudget(epsilon=20.0, eta=0.04)
    >>> budget.leaked([1, 50]).round(3).tolist()  # 20 (1 - e^-0.04) and 20 (1 - e^-2)
    [0.784, 17.293]
    """

    eta: Annotated[float, Field(gt=0)] = 0.04

    def term(self, i: ArrayLike) -> NDArray[np.float64]:
        """Return terms that are 0, below the smallest float, from about ``745 / eta`` on."""
        index = _counts("i", i, lowest=1)
        return np.asarray(self.epsilon * -np.expm1(-self.eta) * np.exp(-self.eta * (index - 1.0)))

    def leaked(self, n: ArrayLike) -> NDArray[np.float64]:
        """Return a closed form, not a running sum, so that rounding never carries it above ``epsilon``."""
        return np.asarray(self.epsilon * -np.expm1(-self.eta * _counts("n", n, lowest=0)))


class ZetaBudget(_Finite):
    """A budget spent in terms that fall as a power of their number: late releases get larger terms than geometric ones.

    The i-th release costs ``epsilon i^(-power) / zeta(power)``, where zeta is Riemann's function, so that all terms
    have the sum ``epsilon``. What is left after n releases falls like ``n^(1 - power)``.

    Attributes
    ----------
    epsilon : sum of all terms
    power : how fast the terms fall; the nearer to 1, the smaller the first terms

    Examples
    --------
    >>> budget = ZetaBudget(epsilon=20.0, power=2.0)
    >>> budget.term([1, 2, 3]).round(3).tolist()  # 20 / (pi^2 / 6), and 1/4 and 1/9 of it
    [12.159, 3.04, 1.351]
    >>> round(float(budget.leaked(3)), 3)
    16.549
    """

    power: Annotated[float, Field(ge=1.001, le=50)] = 1.1

    def term(self, i: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(self.epsilon * _counts("i", i, lowest=1) ** -self.power / _zeta(self.power, 1.0))

    def leaked(self, n: ArrayLike) -> NDArray[np.float64]:
        """Return the sum from Hurwitz's zeta function."""
        left = _zeta(self.power, _counts("n", n, lowest=0) + 1.0) / _zeta(self.power, 1.0)
        return np.asarray(self.epsilon * (1.0 - left))


class UniformBudget(_Finite):
    """A budget in equal terms for a number of releases; a client that has made them is no candidate any more.

    Attributes
    ----------
    epsilon : sum of all terms
    releases : number of terms, the horizon
    """

    releases: Annotated[int, Field(ge=1)]

    def term(self, i: ArrayLike) -> NDArray[np.float64]:
        return np.where(_counts("i", i, lowest=1) <= self.releases, self.epsilon / self.releases, 0.0)

    def leaked(self, n: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(self.epsilon * np.minimum(_counts("n", n, lowest=0) / self.releases, 1.0))


class UnlimitedBudget(Component):
    """The same epsilon for every release, without an end: leakage grows with each, and nothing stops it.

    Attributes
    ----------
    epsilon : cost of each release
    """

    epsilon: Annotated[float, Field(gt=0)]

    @property
    def total(self) -> float:
        return np.inf

    def term(self, i: ArrayLike) -> NDArray[np.float64]:
        return np.full_like(_counts("i", i, lowest=1), self.epsilon)

    def leaked(self, n: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(self.epsilon * _counts("n", n, lowest=0))


def _zeta(power: float, start: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Hurwitz's zeta function, the sum of ``(start + j)^(-power)`` over all j from 0."""
    # Runs without this budget need not load SciPy.
    from scipy.special import zeta

    return np.asarray(zeta(power, start), dtype=np.float64)


def _counts(name: str, values: ArrayLike, lowest: int) -> NDArray[np.float64]:
    counts = np.asarray(values, dtype=np.float64)
    if not np.all(counts >= lowest):
        raise ValueError(f"{name}: {values!r} is not allowed; it must be at least {lowest}")
    return counts


BUDGETS: Final = Registry(
    "privacy budget",
    "fedsim.budgets",
    ("term", "leaked"),
    {
        "geometric": "fedsim.privacy.budget:GeometricBudget",
        "zeta": "fedsim.privacy.budget:ZetaBudget",
        "uniform": "fedsim.privacy.budget:UniformBudget",
        "unlimited": "fedsim.privacy.budget:UnlimitedBudget",
    },
)
