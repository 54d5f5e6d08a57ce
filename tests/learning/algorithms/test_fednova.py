"""FedNova by hand: norms of the authors' recursion, and the sum of a server."""

import numpy as np
import pytest

from fedsim import Scenario
from fedsim.errors import ScenarioError
from fedsim.learning import FedNova, LocalSteps, LocalTraining, Supervised
from tests.support.plain_learner import half_way_learner, updates


def authors(steps, rate, momentum, mu):
    """Return the norm of a_i as the authors' code counts it; it has momentum or a pull, not both."""
    counter = norm = 0.0
    for _ in range(steps):
        if momentum:
            counter = counter * momentum + 1
            norm += counter
        if mu:
            norm = norm * (1 - rate * mu) + 1
        if not momentum and not mu:
            norm += 1
    return norm


@pytest.mark.parametrize(("momentum", "mu"), [(0.0, 0.0), (0.9, 0.0), (0.0, 0.5)])
def test_weights_are_those_of_the_authors_code(momentum, mu):
    share, steps, rate = np.array([0.25, 0.35, 0.4]), np.array([2, 40, 7]), np.array([0.1, 0.2, 0.1])
    norms = [authors(*one, momentum, mu) for one in zip(steps.tolist(), rate.tolist(), strict=True)]
    effective = float(share @ (steps if mu else np.array(norms)))
    found = FedNova(mu=mu).weights(LocalSteps(share, steps, rate, momentum, mu))
    np.testing.assert_allclose(found, effective * share / norms)


def test_clients_of_two_and_four_steps_by_hand():
    """Differences (1, 0) and (0, 4): tau_eff = 3, so 0.5 * 3 / 2 times the one and 0.5 * 3 / 4 times the other."""
    local = LocalTraining(learning_rate=1.0, steps=4)
    learner, _ = half_way_learner([(4.0, 0.0), (0.0, 8.0)], local, FedNova())
    start = learner.initial()
    sent = learner.updates(start, np.array([0, 1]), work=np.array([0.5, 1.0]))
    after = learner.aggregate(start, sent, np.array([0.5, 0.5]))
    assert learner.vector(after).tolist() == [0.75, 1.5, 1]  # the statistic is averaged with the weights as given
    alike = learner.aggregate(start, updates(learner, start, 0, 1), np.array([0.5, 0.5]))
    assert learner.vector(alike).tolist() == [1, 2, 1]  # federated averaging where all do the same steps


def test_what_it_does_not_go_with_is_refused():
    with pytest.raises(ValueError, match=r"local\.optimizer = 'adam' is not allowed with algorithm = 'fednova'"):
        Supervised.model_validate({"algorithm": "fednova", "local": {"optimizer": "adam"}})
    with pytest.raises(ValueError, match=r"aggregation = 'median' is not allowed with algorithm = 'fednova'"):
        Supervised.model_validate({"algorithm": "fednova", "aggregation": "median"})
    tables = {"name": "nova", "crowd": {"clients": 4}, "network": "pause-two-speed", "selector": "all"}
    with pytest.raises(ScenarioError, match="one synchronous server"):
        Scenario(
            **tables,
            learning={"algorithm": "fednova"},
            rounds={"count": 2, "policy": {"kind": "fedbuff", "concurrency": 2, "buffer": 2}},
        )
