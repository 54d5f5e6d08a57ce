"""Server optimisers in whole runs."""

import numpy as np
import pytest

from tests.support.short_runs import DIGITS, losses

SCENARIO = DIGITS.replace(
    {"learning.split": "equal", "learning.server": {"kind": "fedavgm", "momentum": 0.8}, "rounds.count": 6}
)
BUFFER = {"rounds.policy": {"kind": "fedbuff", "concurrency": 4, "buffer": 2}}
MIXING = {"rounds.policy": {"kind": "fedasync", "concurrency": 4}}
SAFA = {"rounds.policy": {"kind": "safa", "share": 0.4, "max_wait_s": 1.0}, "selector": "all"}
SCARCE = {"rounds.minimum_updates": 2, "rounds.policy": {"kind": "deadline", "deadline_s": 0.6}}


EDGES = {
    "rounds.edges": {"grouping": {"kind": "order", "count": 2}, "backhaul": "none", "rounds": 2, "server": "fedavgm"}
}


@pytest.mark.parametrize("changes", [{}, BUFFER, MIXING, SAFA, SCARCE], ids=["all", "buffer", "mixing", "safa", "few"])
def test_runs_of_one_scenario_share_no_state(changes: dict[str, object]) -> None:
    scenario = SCENARIO.replace(changes)
    first = losses(scenario)
    assert losses(scenario) == first
    plain = losses(scenario.replace({"learning.server": "fedavg"}))
    assert first != plain
    without = losses(scenario.replace({"learning.server.momentum": 0.0}))
    np.testing.assert_allclose(without, plain, rtol=1e-4)


def test_edge_servers_and_cloud_have_rules_of_their_own() -> None:
    scenario = SCENARIO.replace(EDGES)
    both = losses(scenario)
    assert losses(scenario) == both
    cloud, edges, none = (
        losses(scenario.replace(changes))
        for changes in (
            {"learning.server": "fedavg"},
            {"rounds.edges.server": "fedavg"},
            {"learning.server": "fedavg", "rounds.edges.server": "fedavg"},
        )
    )
    assert len({tuple(found) for found in (both, cloud, edges, none)}) == 4
    still = losses(scenario.replace({"learning.server.momentum": 0.0, "rounds.edges.server.momentum": 0.0}))
    np.testing.assert_allclose(still, none, rtol=1e-4)


def test_a_cloud_that_mixes_each_model_as_it_comes_steps_with_what_it_would_mix_in() -> None:
    changes = {**EDGES, "rounds.edges.merging": "asynchronous", "learning.server": "fedavg"}
    scenario = SCENARIO.replace(changes)
    servers = ({"kind": "fedavgm", "momentum": 0.0}, "fedavg")
    still, none = (losses(scenario.replace({"rounds.edges.server": server})) for server in servers)
    np.testing.assert_allclose(still, none, rtol=1e-4)


def test_one_edge_server_at_no_distance_is_a_flat_server() -> None:
    flat = SCENARIO
    alone = {"rounds.edges": {"grouping": {"kind": "order", "count": 1}, "backhaul": "none"}}
    assert losses(flat.replace(alone)) == losses(flat)
    # At the cloud the same rule sees the same updates.
    at_cloud = flat.replace({**alone, "learning.server": "fedavg", "rounds.edges.server": flat.learning.server})
    np.testing.assert_allclose(losses(at_cloud), losses(flat), rtol=1e-4)
