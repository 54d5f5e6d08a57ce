"""What a cloud rule states, and the server optimisers of the cloud and of edge servers."""

import numpy as np
import pytest
from pydantic import ValidationError

from fedsim import Component
from fedsim.learning import FedAvg, FedAvgM
from fedsim.rounds import Edges, WaitForAll
from fedsim.rounds.hierarchy.cloud_rules import CloudRule
from tests.support.worlds import CountingLearner, serve


class Equal(CloudRule):
    """The unweighted mean of the models that are fresh."""

    waits_for_all = True

    def shares(self, status):
        return 0.0, status.fresh / status.fresh.sum()


class Silent(Component):
    """Does not state whether the cloud waits for all."""

    def shares(self, status):
        return 1.0, np.zeros(status.fresh.size)


def edges(**options):
    return Edges(**{"grouping": {"kind": "order", "count": 2}, "backhaul": "none", **options})


def test_a_rule_of_ones_own_waits_for_clients_unless_it_says_otherwise():
    assert not Equal().skips_idle_edges
    learner = CountingLearner(np.array([10, 30, 20, 20]))
    serve(WaitForAll(), [1] * 4, [1, 2, 3, 1], [1] * 4, learner=learner, edges=edges(merging=Equal()))
    assert learner.merged == [([1, 1], [0.5, 0.5])]


def test_a_rule_that_states_too_little_is_refused():
    with pytest.raises(ValidationError, match="must say waits_for_all and skips_idle_edges"):
        edges(merging=Silent())
    with pytest.raises(ValidationError, match="has no method shares"):
        edges(merging=f"{__name__}:Waiting")


class Waiting(CloudRule):
    """Has no shares."""

    waits_for_all = True


class Asked(CountingLearner):
    """Keeps the versions of the models between which servers step, and the cloud's optimiser."""

    def server_step(self, model, mean, optimizer=None):
        steps.append((model.version, mean.version, optimizer))
        return mean

    def with_state_of(self, model, previous):
        fetches.append((model.version, previous.version))
        return model


steps, fetches = [], []


def test_the_cloud_steps_to_the_mean_and_edge_servers_keep_their_state():
    """In two rounds of the cloud, with two edge rounds each."""
    steps.clear()
    fetches.clear()
    learner, momentum = Asked(np.full(4, 10)), FedAvgM(momentum=0.5)
    serve(WaitForAll(), [1] * 4, [1] * 4, [1] * 4, learner=learner, edges=edges(rounds=2, server=momentum), count=2)
    assert steps == [(0, 2, momentum), (2, 4, momentum)]
    assert fetches == [(0, 0), (0, 0), (2, 2), (2, 2)]
    assert edges().server == FedAvg()
