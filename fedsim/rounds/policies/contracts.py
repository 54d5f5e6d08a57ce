"""What a policy states and does: traits of the server, the time limit of a round, and when the round is over.

The server selects and sends clients; its policy waits. Two kinds cover most methods: a `SynchronousPolicy` states which
event is enough, an `AsynchronousPolicy` how many updates. Any other derives from `RoundPolicy` and waits as it likes.
Which events of the instant at which a round ends belong to it: section "Time" of `fedsim/README.md`.
"""

import difflib
import math
from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Final, Self, final

from pydantic import Field, model_validator
from simpy import Event

from fedsim.answers import (
    AnswerError,
    Contract,
    Flag,
    Given,
    InstanceOf,
    Kind,
    Number,
    PartOf,
    in_words,
    unchecked,
)
from fedsim.arrays import Whole
from fedsim.capabilities import NO_LOSSES, TIME_LIMIT
from fedsim.clock import first_of, rest_of_instant
from fedsim.history.outcomes import RoundEnd
from fedsim.learning import Learner
from fedsim.registry import Component, Registry, Slot, refusal
from fedsim.rounds.aggregation.rules import AGGREGATION_RULE, AggregationRule
from fedsim.rounds.aggregation.staleness import STALENESS, Polynomial, StalenessLaw
from fedsim.rounds.effects.steps import stepped
from fedsim.rounds.policies.round import PastRounds, Round
from fedsim.rounds.policies.server_port import ServerPort, ServerTraits
from fedsim.units import LONGEST_S, Bound, Positive, Seconds

POLICIES = Registry(
    "policy",
    "fedsim.policies",
    ("wait", "time_limit_s", "aggregation"),
    {
        "adaptive-deadline": "fedsim.rounds.policies.adaptive:QuantileDeadline",
        "deadline": "fedsim.rounds.policies.deadline:Deadline",
        "fedasync": "fedsim.rounds.policies.asynchronous:FedAsync",
        "fedbuff": "fedsim.rounds.policies.asynchronous:FedBuff",
        "k-fastest": "fedsim.rounds.policies.count_based:KFastest",
        "moving-average": "fedsim.rounds.policies.adaptive:MovingAverage",
        "pisces": "fedsim.rounds.policies.pisces:Pisces",
        "quorum": "fedsim.rounds.policies.count_based:Quorum",
        "safa": "fedsim.rounds.policies.safa:Safa",
        "wait-for-all": "fedsim.rounds.policies.deadline:WaitForAll",
    },
    attributes=("traits", "has_own_aggregation", "requires", "provides"),
)

Running = Generator[Event, Any, RoundEnd]
"""A policy's wait for the end of a round; its value is what has ended it."""


class RoundPolicy(Component, ABC):
    """When a round is over; derive from `SynchronousPolicy` or `AsynchronousPolicy` where one of them fits.

    Examples
    --------
    >>> from fedsim import Scenario, simulate
    >>> from fedsim.history import RoundEnd
    >>> class FirstOne(RoundPolicy):
    ...     def wait(self, server, round_):
    ...         yield round_.delivered(1)
    ...         return RoundEnd.ENOUGH
    >>> scenario = Scenario(
    ...     name="four", crowd={"clients": 4}, learning="none", network={"kind": "pause-two-speed", "std_s": 0.0},
    ...     devices={"compute": "zero"}, rounds={"count": 1, "policy": FirstOne()}, selector="all",
    ... )
    >>> simulate(scenario).column("rounds", "end_s").tolist()  # the four take 0.125, 0.2, 0.8 and 0.9 s
    [0.125]
    """

    _reads: ClassVar[int | None] = None
    """How many past rounds a class reads; None, all of them, for a class that derives from it and does not state it."""

    @property
    def traits(self) -> ServerTraits:
        """How the server works under this policy."""
        return ServerTraits(remembered_rounds=vars(type(self)).get("_reads"))

    @property
    def requires(self) -> frozenset[str]:
        """Clients that always deliver, if a round does not end without them."""
        return frozenset(() if checked_policy(self).traits.tolerates_losses else {NO_LOSSES})

    @property
    def provides(self) -> frozenset[str]:
        """What the traits provide, and a longest duration of the first round if it has one."""
        checked = checked_policy(self)
        limited = checked.time_limit_s(PastRounds()) < math.inf
        return checked.traits.provides | ({TIME_LIMIT} if limited else set())

    def time_limit_s(self, past: PastRounds) -> float:
        """Return how long the server waits at most once the coming round's cohort has been sent; inf for no limit.

        Parameters
        ----------
        past : lengths and durations of past rounds, as the server saw them
        """
        return math.inf

    def aggregation(self, learner: Learner) -> AggregationRule | None:
        """Return the policy's own rule that makes the next model; None for that of the scenario's late rule.

        Parameters
        ----------
        learner : that adds updates up
        """
        return None

    @property
    def has_own_aggregation(self) -> bool:
        """Whether `aggregation` takes the place of the late rule's."""
        return type(self).aggregation is not RoundPolicy.aggregation

    @abstractmethod
    def wait(self, server: ServerPort, round_: Round) -> Running:
        """Wait for the end of a round, and return what has ended it.

        A server with a `concurrency` fills vacant places before each event that is yielded, and goes on after all else
        that happens at the instant of the event.

        Parameters
        ----------
        server : whose clients deliver
        round_ : the round, whose cohort has been sent

        Returns
        -------
        RoundEnd
        """

    @model_validator(mode="after")
    def _has_traits(self) -> Self:
        try:
            _ = self.traits
        except TypeError as error:
            names = ", ".join(trait.name for trait in fields(ServerTraits))
            raise refusal(
                "bad_traits", "traits: {error}; allowed: ServerTraits with {names}", error=error, names=names
            ) from error
        return self

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse names that are no part of the contract but almost one of its names."""
        super().__pydantic_init_subclass__(**kwargs)
        for name in vars(cls):
            if name.startswith("_") or name in cls.model_fields or name in _CONTRACT:
                continue
            close = difflib.get_close_matches(name, _CONTRACT, n=1, cutoff=0.87)
            if close:
                raise TypeError(f"{cls.__name__}.{name}: a policy has no such name; did you mean {close[0]!r}?")
        for base in cls.__mro__[1:]:
            sealed = vars(base).get("wait")
            if "wait" in vars(cls) and sealed is not None and vars(sealed).get("__final__"):
                raise TypeError(
                    f"{cls.__name__}.wait: a {base.__name__} states when a round is over; allowed: derive from "
                    "RoundPolicy"
                )


@dataclass(frozen=True)
class _Traits:
    """Traits whose numbers are in range."""

    def __call__(self, answer: object, given: Given) -> ServerTraits:
        traits: ServerTraits = InstanceOf(ServerTraits)(answer, given)
        for name, kind in _TRAITS.items():
            try:
                kind(vars(traits)[name], given)
            except AnswerError as error:
                raise AnswerError(f"{name} = {error.found}", error.allowed) from None
        return traits


@dataclass(frozen=True)
class _End:
    """What has ended a round."""

    def __call__(self, answer: object, given: Given) -> RoundEnd:
        if type(answer) is not RoundEnd:
            raise AnswerError(in_words(answer), ", ".join(map(str, RoundEnd)))
        return answer


@dataclass(frozen=True)
class _Wait:
    """A policy's wait, whose failure names the policy and not the class in which it stands."""

    def __call__(self, answer: object, given: Given) -> Running:
        steps: Running = InstanceOf(Generator)(answer, given)
        return stepped(steps, given["policy"], "wait", lambda end: _End()(end, given))


_COUNT: Final = Number(least=1, whole=True, none=True)
_TRAITS: Final[dict[str, Kind]] = {
    "cohort_size": _COUNT,
    "concurrency": _COUNT,
    "buffer_size": _COUNT,
    "give_up_after_s": Number(least=0, above=True, infinite=True),
    "overlaps_rounds": Flag(),
    "tolerates_losses": Flag(),
    "most_lag": Number(least=0, whole=True, none=True),
    "remembered_rounds": Number(least=0, whole=True, none=True),
    "provides": InstanceOf(frozenset),
}
POLICY: Final = Contract(
    "policy",
    RoundPolicy,
    {
        "traits": _Traits(),
        "time_limit_s": Number(least=0, infinite=True),
        "aggregation": PartOf(AggregationRule, AGGREGATION_RULE, none=True),
        "enough": InstanceOf(Event),
        "wait": _Wait(),
    },
    inherited=("wait",),
)
_CONTRACT: Final = (
    "traits",
    "has_own_aggregation",
    "time_limit_s",
    "aggregation",
    "wait",
    "enough",
    "takes_ties",
    "updates_per_round",
    "requires",
    "provides",
)


class SynchronousPolicy(RoundPolicy):
    """One cohort a round: the round is over when `enough` is triggered, at the latest after `time_limit_s`.

    ``takes_ties`` states whether other events of the instant at which `enough` is triggered still belong to the round.
    """

    takes_ties: ClassVar[bool] = True

    @abstractmethod
    def enough(self, round_: Round) -> Event:
        """Return the event that ends a round whose cohort has been sent."""

    @final
    def wait(self, server: ServerPort, round_: Round) -> Running:
        enough = self.enough(round_)
        if round_.time_limit_s < math.inf:
            yield from first_of(server.env, enough, round_.limit(round_.time_limit_s))
        else:
            yield enough
        if self.takes_ties:
            yield from rest_of_instant(server.env)
        return round_.ended_by()


class WholeCohort(SynchronousPolicy):
    """A synchronous policy for which the delivery of the whole cohort is enough."""

    takes_ties: ClassVar[bool] = False

    def enough(self, round_: Round) -> Event:
        return round_.everyone


def waits_for_whole_cohort(policy: RoundPolicy) -> bool:
    """Return whether no other event ends a round than the delivery of its whole cohort, or its limit."""
    kind = type(unchecked(policy))
    return issubclass(kind, WholeCohort) and kind.enough is WholeCohort.enough


class ReplacingPolicy(RoundPolicy):
    """A number of clients in flight.

    The server replaces a client that has delivered or was given up at once, as long as another one is available. A
    client starts from the newest model, and its update may be stale when it arrives: staleness counts from the version
    that the client started from, and a fresh update has a staleness of 0. Updates above ``max_staleness`` are discarded
    as they arrive. A client is no candidate before it has delivered or was given up: the server cannot tell a lost
    client from a slow one.
    """

    concurrency: Whole
    staleness: Annotated[StalenessLaw, Slot(STALENESS)] = Polynomial()
    max_staleness: Annotated[int, Field(ge=0)] | None = None
    give_up_s: Annotated[Positive[Seconds], Bound(1e-3, LONGEST_S)] | None = None

    @property
    def traits(self) -> ServerTraits:
        """Concurrency and patience; losses are tolerated if clients are given up."""
        return replace(
            super().traits,
            concurrency=self.concurrency,
            give_up_after_s=math.inf if self.give_up_s is None else self.give_up_s,
            overlaps_rounds=True,
            tolerates_losses=self.give_up_s is not None,
        )


class AsynchronousPolicy(ReplacingPolicy):
    """The model moves on when enough updates have arrived."""

    @property
    @abstractmethod
    def updates_per_round(self) -> int:
        """How many updates an aggregation takes."""

    @abstractmethod
    def aggregation(self, learner: Learner) -> AggregationRule:
        """Return the rule that makes the next model of the updates of a round."""

    @property
    def traits(self) -> ServerTraits:
        return replace(super().traits, buffer_size=self.updates_per_round, remembered_rounds=0)

    @final
    def wait(self, server: ServerPort, round_: Round) -> Running:
        while server.buffered < self.updates_per_round:
            yield server.next_arrival()
        return RoundEnd.ENOUGH


def checked_policy(policy: RoundPolicy) -> RoundPolicy:
    """Return a policy whose returned values are checked; one of fedsim's own as it is."""
    return POLICY.checked(policy, policy=POLICY.name_of(policy))
