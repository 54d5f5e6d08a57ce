"""The candidates of a server as a set of ids, and in whole runs as a plain look at all clients."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim import simulate
from fedsim.rounds.server import crowd
from fedsim.rounds.server.crowd import CandidateSet
from fedsim.rounds.server.synchronous import SynchronousServer
from fedsim.selectors import Uniform
from tests.support.short_runs import timed

PRESENCE = {
    "always": "always",
    "bernoulli": {"kind": "bernoulli", "probability": 0.3},
    "markov": {"kind": "markov", "mean_on_s": 2.0, "mean_off_s": 3.0},
}
LAW = {"kind": "log-normal", "median_s": 0.3, "sigma": 0.8}
LATENCY = {"kind": "latency", "downlink": LAW, "uplink": LAW}
POLICIES = {
    "stale": {"kind": "deadline", "deadline_s": 0.9},
    "fedbuff": {"kind": "fedbuff", "buffer": 3, "concurrency": 5, "give_up_s": 4.0},
    "fedasync": {"kind": "fedasync", "concurrency": 4, "give_up_s": 4.0},
}


@given(
    member=st.sets(st.integers(0, 60), min_size=1).map(sorted),
    changes=st.lists(st.dictionaries(st.integers(0, 60), st.booleans()), max_size=12),
    block=st.sampled_from([1, 4, 1024]),
    few=st.sampled_from([0, 64]),
)
def test_it_is_a_set(member, changes, block, few):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crowd, "BLOCK", block)
        patch.setattr(crowd, "_FEW", few)
        ids, plain = np.array(member), set()
        kept = CandidateSet(ids, whole_crowd=member == list(range(len(member))))
        for change in changes:
            here = {client: state for client, state in change.items() if client in member}
            kept.put(np.searchsorted(ids, np.array(list(here), dtype=int)), np.array(list(here.values()), dtype=bool))
            plain = (plain | {client for client, state in here.items() if state}) - {
                client for client, state in here.items() if not state
            }
            expected = sorted(plain)
            assert (kept.count, kept.complete) == (len(expected), len(expected) == len(member))
            assert kept.pick(np.arange(kept.count)).tolist() == expected
            assert kept.everyone().tolist() == expected
            asked = np.arange(-2, 64)
            assert kept.includes(asked).tolist() == [client in plain for client in asked.tolist()]
            assert [kept.below(client) for client in range(62)] == [
                sum(other < client for other in expected) for client in range(62)
            ]


def scenario(policy, presence, **changes):
    return timed(
        seed=3,
        clients=40,
        bits=1e6,
        cohort=6,
        network=LATENCY,
        devices={
            "availability": PRESENCE[presence],
            "compute": "zero",
            "dropout": {"kind": "hazard", "rate_per_s": 0.05},
        },
        rounds={
            "count": 20,
            "policy": POLICIES[policy],
            **({"late": {"kind": "stale", "weight": "constant"}} if policy == "stale" else {}),
        },
    ).replace(changes)


@pytest.fixture
def compared(monkeypatch):
    """Compare the candidates with a plain look at all clients at each selection; returns their numbers."""
    plain_view, seen = SynchronousServer._view, []

    def view(self, time_s, size):
        shown = plain_view(self, time_s, size)
        member, draw = self.crowd.member, self.crowd.draw(self.number)
        expected = member[self.context.availability.available(member, time_s, draw) & self.crowd.idle]
        assert self.candidates == expected.size
        if shown is not None:
            np.testing.assert_array_equal(shown.client, expected)
            assert shown.includes(np.arange(40)).tolist() == np.isin(np.arange(40), expected).tolist()
        seen.append(self.candidates)
        return shown

    monkeypatch.setattr(SynchronousServer, "_view", view)
    return seen


@pytest.mark.parametrize("presence", PRESENCE)
@pytest.mark.parametrize("policy", ["stale", "fedbuff", "fedasync"])
def test_it_is_a_plain_look_at_all_clients(policy, presence, compared):
    simulate(scenario(policy, presence))
    assert len(compared) >= 20
    assert len(set(compared)) > 1


EDGES = {"rounds.edges": {"grouping": {"kind": "order", "count": 3}, "backhaul": "none"}, "rounds.count": 15}
BATTERIES_AND_FAILURES = {
    "devices.energy": {
        "kind": "battery",
        "capacity_j": 0.5,
        "initial_from": 0.2,
        "compute_w": 0.1,
        "transmit_j_per_bit": 2e-7,
        "charge_w": 0.1,
        "idle_w": 0.01,
        "least_charge": 0.3,
    },
    "rounds.faults": {
        "client_crash": {"mean_up_s": 6.0, "mean_down_s": 2.0},
        "server_restart": {"mean_up_s": 5.0, "down_s": 0.3},
    },
}


@pytest.mark.parametrize("policy", ["stale", "fedbuff"])
@pytest.mark.parametrize("changes", [EDGES, BATTERIES_AND_FAILURES], ids=["edges", "batteries and failures"])
def test_so_it_is_at_edge_servers_and_with_batteries_and_failures(policy, changes, compared):
    simulate(scenario(policy, "markov", **changes))
    assert len(set(compared)) > 3


@pytest.mark.parametrize(("presence", "oracle"), [("always", False), ("bernoulli", True)])
@pytest.mark.parametrize(
    ("policy", "deadlines_s"),
    [
        ({"kind": "deadline", "deadline_s": 0.9}, {0.9}),
        ({"kind": "wait-for-all"}, {None}),
        ({"kind": "fedbuff", "buffer": 3, "concurrency": 5, "give_up_s": 4.0}, {None}),
    ],
)
def test_a_view_tells_how_long_the_server_waits(policy, deadlines_s, presence, oracle):
    told = set()

    class Reading(Uniform):
        def select(self, view, rng):
            told.add(view.deadline_s)
            return super().select(view, rng)

    Reading.oracle = oracle
    tables = {"network": LATENCY, "rounds": {"count": 3, "policy": policy}, "selector": Reading(3)}
    simulate(timed(clients=8, bits=1e4, devices={"compute": "zero", "availability": PRESENCE[presence]}, **tables))
    assert told == deadlines_s
