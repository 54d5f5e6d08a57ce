"""SAFA: everybody trains, the first to arrive are picked, and the others are not lost.

Wu, He, Lin, Mao and Jarvis, "SAFA: a Semi-Asynchronous Protocol for Fast Federated Learning with Low Overhead", IEEE
Transactions on Computers 70(5), 2021. Use it with the selector ``all``: in SAFA selection comes after training.
"""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field
from simpy import Environment

from fedsim.arrays import Seconds
from fedsim.clock import LastOfInstant, Waiting, rest_of_instant
from fedsim.learning import Learner
from fedsim.registry import Component
from fedsim.rounds.aggregation.model_cache import ModelCache
from fedsim.rounds.aggregation.rules import AggregationRule
from fedsim.rounds.policies.contracts import at_least
from fedsim.rounds.policies.round import Round


class Safa(Component):
    """Compensatory first-come-first-merge (section 3.3, Algorithm 2) and the cache (section 3.4, equations 6 to 8).

    A round ends when a quota of ``share`` of the crowd has arrived among clients that were not picked in the
    round before, or nobody is at work any more, at the latest after ``max_wait_s``; then clients that were picked
    in the round before fill the quota, fastest first. The picked enter the server's cache of local models, the new
    model is the cache's mean weighted by samples, and those that arrived in vain enter the cache for the round after
    (the bypass). Clients that are still at work go on, unless their model is more than ``lag`` versions old: these
    are cut off, and the entries of all clients that are so far behind become the global model (the deprecated,
    section 3.2). The cache begins with the initial model in every place.

    The authors' code knows all arrival times in advance and ends the round with the last one that it picks; a server
    does not know whether more will come, so here a quota that must be filled with last round's clients is
    filled when the time is up. A client that crashes begins anew from the newest model when it is there again; in the
    paper it goes on from its own. An update of which nothing came because a newer one of the same client was picked
    before it was merged counts as unmerged.

    REFL's code compares itself with a reduced form, which the scenario puts together from other parts: every free
    client works (selector ``all``), the round ends when a tenth has delivered (policy ``quorum`` with share 0.1 and a
    longest wait of 100 s), and late updates are merged up to a staleness of 5 (``late = "stale"``). It has no cache, no
    bypass and no favour for those not picked last time.

    Attributes
    ----------
    share : float in (0, 1], the paper's C
    max_wait_s : the paper's limit on the round
    lag : int >= 0, the paper's tolerance tau, 5 in its experiments
    """

    ends_without_everyone: ClassVar[bool] = True
    cancels: ClassVar[bool] = False
    at_edges: ClassVar[bool] = False
    goes_on: ClassVar[bool] = True

    share: Annotated[float, Field(gt=0, le=1)] = 0.1
    max_wait_s: Seconds
    lag: Annotated[int, Field(ge=0)] = 5

    def closes_after_s(self, memory: object) -> float:
        """Return the limit on the round."""
        return self.max_wait_s

    def merger(self, learner: Learner) -> AggregationRule:
        """Return the cache."""
        return ModelCache(learner, self.quota(learner.samples.size), self.lag)

    def quota(self, clients: int) -> int:
        """Return how many are picked of a crowd."""
        return at_least(self.share, clients)

    def wait(self, env: Environment, round_: Round) -> Waiting:
        """Wait for the quota of clients that were not picked last time, for everybody, or until the time is up."""
        limit = LastOfInstant(env, self.max_wait_s)
        while not limit.processed and round_.outstanding:
            waiting = round_.waiting_clients()
            if np.count_nonzero(~np.isin(waiting, round_.memory.picked)) >= self.quota(round_.clients):
                break
            yield limit | round_.change()
        yield from rest_of_instant(env)
