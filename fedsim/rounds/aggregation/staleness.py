"""How much a stale update still counts.

An update's staleness is how many aggregations the server has made since the client started: the server's version now
minus the version the client started from. A law turns it into a factor of the update's weight, 1 for a fresh one.
"""

from typing import Annotated, ClassVar, Final, Protocol

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveFloat

from fedsim.answers import Contract, Numbers, same_shape
from fedsim.arrays import FloatArray
from fedsim.registry import Component, Registry

STALENESS: Final = Registry(
    "staleness law",
    "fedsim.staleness",
    ("factor",),
    {
        "constant": "fedsim.rounds.aggregation.staleness:Constant",
        "polynomial": "fedsim.rounds.aggregation.staleness:Polynomial",
        "hinge": "fedsim.rounds.aggregation.staleness:Hinge",
        "exponential": "fedsim.rounds.aggregation.staleness:Exponential",
        "deviation": "fedsim.rounds.aggregation.staleness:Deviation",
    },
    attributes=("uses_deviation",),
)


class StalenessLaw(Protocol):
    """What a stale update counts beside a fresh one.

    Attributes
    ----------
    uses_deviation : whether it matters how far an update lies from the fresh ones, which costs training to know
    """

    uses_deviation: ClassVar[bool]

    def factor(self, staleness: FloatArray, deviation: FloatArray) -> FloatArray:
        """Return the factor of each update's weight.

        Parameters
        ----------
        staleness : versions since the client started, >= 0, shape (n,)
        deviation : how far each stale update lies from the mean of the fresh ones, >= 0, shape (n,); zeros where
            `uses_deviation` is False
        """
        ...


STALENESS_LAW: Final = Contract("staleness law", StalenessLaw, {"factor": Numbers(same_shape("staleness"), least=0)})


class Constant(Component):
    """A stale update counts like a fresh one (Xie et al. 2019, "Asynchronous Federated Optimization", section 5.2)."""

    uses_deviation: ClassVar[bool] = False

    def factor(self, staleness: FloatArray, deviation: FloatArray) -> FloatArray:
        return np.ones_like(staleness)


class Polynomial(Component):
    """``(staleness + 1) ** -a`` (Xie et al. 2019, section 5.2; FedBuff, Nguyen et al. 2022, section 3.2, with a = 1/2).

    With a = 1 it is the rule ``1 / (staleness + 1)`` that REFL compares itself with (Abdelmoniem et al. 2023).

    Attributes
    ----------
    a : float >= 0
    """

    uses_deviation: ClassVar[bool] = False
    a: NonNegativeFloat = 0.5

    def factor(self, staleness: FloatArray, deviation: FloatArray) -> FloatArray:
        return np.asarray((staleness + 1.0) ** -self.a)


class Hinge(Component):
    """1 up to a staleness of b, then ``1 / (a (staleness - b) + 1)`` (Xie et al. 2019, section 5.2).

    Attributes
    ----------
    a : float > 0, the paper's 10
    b : float >= 0, the paper's 4
    """

    uses_deviation: ClassVar[bool] = False
    a: PositiveFloat = 10.0
    b: NonNegativeFloat = 4.0

    def factor(self, staleness: FloatArray, deviation: FloatArray) -> FloatArray:
        return np.asarray(1.0 / (self.a * np.maximum(staleness - self.b, 0.0) + 1.0))


class Exponential(Component):
    """``exp(-a * staleness)``.

    REFL's reference code has ``exp(-(staleness + 1))`` beside fresh updates of weight 1: there even a staleness of 0
    would be discounted, which cannot occur. Here a fresh update keeps its weight.

    Attributes
    ----------
    a : float > 0
    """

    uses_deviation: ClassVar[bool] = False
    a: PositiveFloat = 1.0

    def factor(self, staleness: FloatArray, deviation: FloatArray) -> FloatArray:
        return np.exp(-self.a * staleness)


class Deviation(Component):
    """REFL's rule: ``(1 - beta) / (staleness + 1) + beta (1 - exp(-L / L_max))`` for stale updates, 1 for fresh ones.

    L is how far the stale update would move the mean of the fresh ones, L_max the largest L of the round
    (Abdelmoniem et al., "REFL: Resource-Efficient Federated Learning", EuroSys 2023, section 5.2): an update that
    says something new is boosted, though it is old.

    Attributes
    ----------
    beta : float in [0, 1], share of the boost; 0.35 in the paper
    scale : float > 0, divides the boost's exponential; the reference code's option, 1 in the paper
    """

    uses_deviation: ClassVar[bool] = True
    beta: Annotated[float, Field(ge=0, le=1)] = 0.35
    scale: PositiveFloat = 1.0

    def factor(self, staleness: FloatArray, deviation: FloatArray) -> FloatArray:
        """Return the damped and boosted factor; exactly 1 where the staleness is 0."""
        most = float(deviation.max(initial=0.0))
        relative = deviation / most if most > 0 else np.zeros_like(deviation)
        boost = 1.0 - np.exp(-relative) / self.scale
        stale = (1.0 - self.beta) / (staleness + 1.0) + self.beta * boost
        return np.where(staleness > 0, stale, 1.0)
