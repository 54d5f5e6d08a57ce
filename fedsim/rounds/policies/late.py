"""What becomes of clients that are late.

A late client is one that has not delivered when its round is over. It can be cut off, or finish and arrive stale; then
it goes on using what it holds of the spectrum, and is no candidate before it is done.
"""

from typing import Annotated, ClassVar, Final, Protocol

from pydantic import Field

from fedsim.capabilities import TIME_LIMIT, Capable
from fedsim.learning import Learner
from fedsim.registry import Component, Registry, Slot
from fedsim.rounds.aggregation.rules import AggregationRule, FedAvgRule
from fedsim.rounds.aggregation.staleness import STALENESS, Polynomial, StalenessLaw

LATE: Final = Registry(
    "late rule",
    "fedsim.late",
    ("merger",),
    {
        "cancel": "fedsim.rounds.policies.late:Cancel",
        "drop": "fedsim.rounds.policies.late:Drop",
        "partial": "fedsim.rounds.policies.late:Partial",
        "stale": "fedsim.rounds.policies.late:Stale",
    },
    attributes=("cancels",),
)


class LateRule(Capable, Protocol):
    """What becomes of late clients.

    A rule may also have ``least_work`` (float in (0, 1)): clients that see that they would be late do less, down
    to this share of their work.

    Attributes
    ----------
    cancels : whether they are cut off when their round is over
    """

    cancels: ClassVar[bool]

    def merger(self, learner: Learner) -> AggregationRule:
        """Return the rule by which arrivals become the next model."""
        ...


class Cancel(Component):
    """They are cut off when the round is over, and free what they used."""

    cancels: ClassVar[bool] = True

    def merger(self, learner: Learner) -> AggregationRule:
        """Return the average of the fresh updates."""
        return FedAvgRule(learner)


class Drop(Component):
    """They finish, and what arrives is thrown away: the upload costs air time and privacy all the same."""

    cancels: ClassVar[bool] = False

    def merger(self, learner: Learner) -> AggregationRule:
        """Return the average of the fresh updates."""
        return FedAvgRule(learner)


class Stale(Component):
    """They finish, and what arrives is merged at the end of the round in which it arrives, discounted.

    Attributes
    ----------
    weight : law of the discount; REFL's is ``"deviation"``
    max_staleness : staler updates are thrown away when they arrive; None for no limit
    """

    cancels: ClassVar[bool] = False
    weight: Annotated[StalenessLaw, Slot(STALENESS)] = Polynomial()
    max_staleness: Annotated[int, Field(ge=0)] | None = None

    def merger(self, learner: Learner) -> AggregationRule:
        """Return the average with discounted stale updates."""
        return FedAvgRule(learner, self.weight, self.max_staleness)


class Partial(Component):
    """A client that sees it would be late does less work and sends what it has (FedProx's partial work).

    When its model has arrived, a client knows how long its work takes and how long its upload takes on average. If
    that is more than what is left until the round must be over, it shortens its work to the whole steps that fit, but
    not below `least_work` of what it was to do, rounded down, and not below one step (Li et al., "Federated
    Optimization in Heterogeneous Networks", MLSys 2020, section 3.2, for the variable amount of work). Its update
    weighs as much as others. Who is late all the same is cut off.

    Attributes
    ----------
    least_work : float in (0, 1], least share of the work
    """

    cancels: ClassVar[bool] = True
    requires: ClassVar[frozenset[str]] = frozenset({TIME_LIMIT})
    least_work: Annotated[float, Field(gt=0, le=1)] = 0.1

    def merger(self, learner: Learner) -> AggregationRule:
        """Return the average of the fresh updates."""
        return FedAvgRule(learner)
