"""Asynchronous servers: FedBuff and FedAsync.

Weights that a selector prescribes and numbers of samples play no part in either paper's rule, nor here.
"""

from typing import Annotated

from pydantic import Field, PositiveFloat

from fedsim.arrays import Whole
from fedsim.learning import Learner
from fedsim.rounds.aggregation.rules import AggregationRule, FixedScaleRule
from fedsim.rounds.policies.contracts import AsynchronousPolicy


class FedBuff(AsynchronousPolicy):
    """A buffer of K updates (Nguyen et al., "Federated Learning with Buffered Asynchronous Aggregation", AISTATS 2022).

    Algorithm 1: when K updates have arrived, ``x <- x + server_rate / K * sum of s(staleness_i) * delta_i``, each delta
    against the model its client started from. The paper's weights are not divided by their sum (FedScale's are). If
    more than K arrive at once, the rest begins the next buffer, one version staler. A buffer that cannot be filled,
    since no client will ever be available again, is never aggregated.

    Attributes
    ----------
    buffer : K, the paper's 10
    server_rate : the paper's global learning rate
    concurrency : clients in flight, the paper's M
    staleness, max_staleness, give_up_s : as for `AsynchronousPolicy`
    """

    buffer: Whole = 10
    server_rate: PositiveFloat = 1.0

    @property
    def updates_per_round(self) -> int:
        return self.buffer

    def aggregation(self, learner: Learner) -> AggregationRule:
        return FixedScaleRule(
            learner, self.server_rate / self.buffer, self.staleness, self.max_staleness, of="difference"
        )


class FedAsync(AsynchronousPolicy):
    """Every update makes a model when it arrives (Xie, Koyejo and Gupta, "Asynchronous Federated Optimization", 2019).

    Algorithm 1: ``x <- (1 - a) x + a x_k`` with ``a = mixing * s(staleness)``, where x_k is the whole model that the
    client trained. Updates that arrive at the same instant are mixed in one after another, each making a version, in
    the order in which their clients started. The paper's proximal term belongs to local training: set
    ``learning.local.proximal`` to its rho (0.005).

    Attributes
    ----------
    mixing : float in (0, 1], the paper's alpha
    concurrency, staleness, max_staleness, give_up_s : as for `AsynchronousPolicy`
    """

    mixing: Annotated[float, Field(gt=0, le=1)] = 0.6

    @property
    def updates_per_round(self) -> int:
        return 1

    def aggregation(self, learner: Learner) -> AggregationRule:
        return FixedScaleRule(learner, self.mixing, self.staleness, self.max_staleness, of="model")
