"""What becomes of clients that are late.

A late client has not delivered when its round is over. It is cancelled, or it finishes and arrives stale; then it still
has its part of the spectrum and is no candidate before it has finished.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from fedsim.answers import Contract, Flag, Number, PartOf
from fedsim.capabilities import TIME_LIMIT
from fedsim.learning import Learner
from fedsim.registry import Component, Registry, Slot
from fedsim.rounds.aggregation.rules import AGGREGATION_RULE, AggregationRule, FedAvgRule
from fedsim.rounds.aggregation.staleness import STALENESS, Polynomial, StalenessLaw
from fedsim.rounds.effects.partial_work import PartialWork

LATE: Final = Registry(
    "late rule",
    "fedsim.late",
    ("aggregation",),
    {
        "cancel": "fedsim.rounds.policies.late:Cancel",
        "drop": "fedsim.rounds.policies.late:Drop",
        "partial": "fedsim.rounds.policies.late:Partial",
        "stale": "fedsim.rounds.policies.late:Stale",
    },
    attributes=("cancels", "least_share"),
)


class LateRule(Component):
    """What becomes of late clients.

    Attributes
    ----------
    cancels : whether they are cancelled when their round is over; every rule states it

    Examples
    --------
    >>> from typing import ClassVar
    >>> class Discard(LateRule):
    ...     cancels: ClassVar[bool] = False
    >>> Discard().cancels, Discard().least_share
    (False, 1.0)
    >>> LATE.make({"kind": "partial", "least_work": 0.25}).least_share
    0.25
    """

    cancels: ClassVar[bool]

    @property
    def least_share(self) -> float:
        """Smallest share of its work that a client may do to be in time; 1: a client never shortens its work."""
        return 1.0

    def aggregation(self, learner: Learner) -> AggregationRule:
        """Return the rule that makes the next model of the updates that have arrived; the average of fresh ones.

        Parameters
        ----------
        learner : that adds updates up
        """
        return FedAvgRule(learner)

    def effects(self, run: Any) -> Sequence[PartialWork]:
        """Return what shortens the work of clients; nothing where `least_share` is 1.

        Parameters
        ----------
        run : that it is for
        """
        least_share = LATE_RULE.checked(self).least_share
        return [PartialWork(least_share, run.workload.learner)] if least_share < 1.0 else []


LATE_RULE: Final = Contract(
    "late rule",
    LateRule,
    {
        "cancels": Flag(),
        "least_share": Number(least=0, above=True, most=1),
        "aggregation": PartOf(AggregationRule, AGGREGATION_RULE),
    },
)


class Cancel(LateRule):
    """Late clients are cancelled when the round is over, and free their spectrum."""

    cancels: ClassVar[bool] = True


class Drop(LateRule):
    """Late clients finish, and their updates are discarded; the upload still costs spectrum, energy and privacy."""

    cancels: ClassVar[bool] = False


class Stale(LateRule):
    """Late clients finish, and the round in which an update arrives aggregates it, discounted.

    Attributes
    ----------
    weight : law of the discount; REFL's is ``"deviation"``
    max_staleness : staler updates are discarded when they arrive; None for no limit
    """

    cancels: ClassVar[bool] = False
    weight: Annotated[StalenessLaw, Slot(STALENESS)] = Polynomial()
    max_staleness: Annotated[int, Field(ge=0)] | None = None

    def aggregation(self, learner: Learner) -> AggregationRule:
        return FedAvgRule(learner, self.weight, self.max_staleness)


class Partial(LateRule):
    """A client that expects to be late does less work and sends its update (FedProx's partial work).

    When its model has arrived, a client knows how long its work takes and how long its upload takes on average. If
    that is longer than the time left until the limit of the round, it shortens its work to the whole steps that fit,
    but not below `least_work` of its assignment, rounded down, and not below one step. The variable amount of work is
    that of Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, section 3.2. The update weighs as
    much as others. A client that is late nevertheless is cancelled.

    Attributes
    ----------
    least_work : float in (0, 1], least share of the work
    """

    cancels: ClassVar[bool] = True
    requires: ClassVar[frozenset[str]] = frozenset({TIME_LIMIT})
    least_work: Annotated[float, Field(gt=0, le=1)] = 0.1

    @property
    def least_share(self) -> float:
        return self.least_work
