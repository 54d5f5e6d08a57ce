"""Asynchronous servers: clients come and go, and the model moves on when enough updates have arrived.

Here a round is what lies between two aggregations, so that rounds count versions of the model. The server keeps a
number of clients at work and replaces whoever has delivered or was given up at once, as long as anybody is free; a
client starts from the newest model, and by the time it delivers its update may be stale. Staleness counts from the
version that the client started from; a fresh update has a staleness of 0. A client is no candidate before the server
has heard of it or given it up: it cannot tell lost from slow. Where the selector asks clients first, they are sent when
the question has been answered; one question is in the air at a time, and updates go on being merged meanwhile. Weights
that a selector prescribes and numbers of samples play no part in either paper's rule, nor here.
"""

from typing import Annotated, ClassVar

from pydantic import Field, PositiveFloat
from simpy import Environment

from fedsim.arrays import Seconds, Whole
from fedsim.clock import Waiting, rest_of_instant
from fedsim.learning import Learner
from fedsim.registry import Component, Slot
from fedsim.rounds.aggregation.rules import AggregationRule, FedAsyncRule, FedBuffRule
from fedsim.rounds.aggregation.staleness import STALENESS, Polynomial, StalenessLaw
from fedsim.rounds.policies.round import Round

Lag = Annotated[int, Field(ge=0)]


class FedBuff(Component):
    """A buffer of K updates (Nguyen et al., "Federated Learning with Buffered Asynchronous Aggregation", AISTATS 2022).

    Algorithm 1: when K updates have arrived, ``x <- x + server_rate / K * sum of s(staleness_i) * delta_i``, each delta
    against the model its client started from. The paper's weights are not divided by their sum (FedScale's are). If
    more than K arrive at once, the rest begins the next buffer, one version staler. A buffer that cannot be filled,
    since nobody will ever come again, is never merged.

    Attributes
    ----------
    buffer : K, the paper's 10
    concurrency : clients at work at the same time, the paper's M
    server_rate : the paper's global learning rate
    staleness : law s; ``(staleness + 1) ** -1/2`` in the paper
    max_staleness : updates that are staler are thrown away when they arrive and fill no buffer; None for no limit
    give_up_s : a client that has not delivered so long after its start is cancelled and replaced; needed where
        clients may be lost, since a server cannot tell lost from slow
    """

    buffer: Whole = 10
    concurrency: Whole
    server_rate: PositiveFloat = 1.0
    staleness: Annotated[StalenessLaw, Slot(STALENESS)] = Polynomial()
    max_staleness: Lag | None = None
    give_up_s: Seconds | None = None

    @property
    def ends_without_everyone(self) -> bool:
        """Whether lost clients are ever replaced."""
        return self.give_up_s is not None

    def merger(self, learner: Learner) -> AggregationRule:
        """Return the rule by which arrivals become the next model."""
        return FedBuffRule(learner, self.buffer, self.server_rate, self.staleness, self.max_staleness)

    def wait(self, env: Environment, round_: Round) -> Waiting:
        """Keep clients at work until the buffer is full."""
        yield from keep_at_work(env, round_, self.concurrency, self.buffer)


class FedAsync(Component):
    """Every update is merged as it arrives (Xie, Koyejo and Gupta, "Asynchronous Federated Optimization", 2019).

    Algorithm 1: ``x <- (1 - a) x + a x_k`` with ``a = mixing * s(staleness)``, where x_k is the whole model that the
    client trained. Updates that arrive at the same instant are merged one after another, each making a version, in the
    order in which their clients started. The paper's proximal term belongs to local training: set
    ``learning.local.proximal`` to its rho (0.005).

    Attributes
    ----------
    concurrency : clients at work at the same time
    mixing : float in (0, 1], the paper's alpha
    staleness, max_staleness, give_up_s : as for `FedBuff`
    """

    concurrency: Whole
    mixing: Annotated[float, Field(gt=0, le=1)] = 0.6
    staleness: Annotated[StalenessLaw, Slot(STALENESS)] = Polynomial()
    max_staleness: Lag | None = None
    give_up_s: Seconds | None = None
    buffer: ClassVar[int] = 1

    @property
    def ends_without_everyone(self) -> bool:
        """Whether lost clients are ever replaced."""
        return self.give_up_s is not None

    def merger(self, learner: Learner) -> AggregationRule:
        """Return the rule by which an arrival becomes the next model."""
        return FedAsyncRule(learner, self.mixing, self.staleness, self.max_staleness)

    def wait(self, env: Environment, round_: Round) -> Waiting:
        """Keep clients at work until one has delivered."""
        yield from keep_at_work(env, round_, self.concurrency, self.buffer)


def keep_at_work(env: Environment, round_: Round, concurrency: int, enough: int) -> Waiting:
    """Send clients on their way, replacing whoever is done, until enough updates have arrived."""
    while round_.waiting < enough and round_.fill(concurrency):
        yield round_.change()
        yield from rest_of_instant(env)
