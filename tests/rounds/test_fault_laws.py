"""The laws of faults: exponential times, shares of time, refusals, whole runs with every kind of fault."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from fedsim import simulate
from fedsim.errors import ScenarioError
from fedsim.rounds.effects.faults.settings import ServerRestart
from fedsim.streams import Streams
from tests.support.families import by_default
from tests.support.short_runs import timed

CRASH, OUTAGE = {"mean_up_s": 6.0, "mean_down_s": 2.0}, {"mean_up_s": 4.0, "mean_down_s": 1.0}
RESTART = {"mean_up_s": 3.0, "down_s": 1.5}
ALL = {"client_crash": CRASH, "link_outage": OUTAGE, "server_restart": RESTART}


@pytest.mark.statistical
def test_times_between_crashes_of_a_server_are_exponential_and_follow_its_downtime():
    law = ServerRestart(mean_up_s=5.0, down_s=2.0)
    crashes_s = np.array(list(itertools.islice(law.crashes_s(Streams(3)), 4000)))
    up_s = np.diff(crashes_s, prepend=-2.0) - 2.0
    distance = stats.kstest(up_s, stats.expon(scale=5.0).cdf).statistic
    assert distance < math.sqrt(math.log(2 / 1e-6) / (2 * up_s.size))
    again = itertools.islice(law.crashes_s(Streams(3)), 10)
    assert list(again) == crashes_s[:10].tolist()


def timing(**rounds):
    down, up = ({"kind": "shifted-exponential", "shift_s": 0.0, "scale_s": scale_s} for scale_s in (0.2, 0.5))
    return timed(
        clients=40,
        bits=1e6,
        samples=100,
        cohort=10,
        network={"kind": "latency", "downlink": down, "uplink": up},
        devices={"compute": {"kind": "rate", "samples_per_s": 100.0}},
        rounds={"count": 30, "policy": {"kind": "deadline", "deadline_s": 3.0}, **rounds},
    )


@pytest.mark.statistical
def test_a_task_survives_crashes_with_the_probability_of_an_exponential_time():
    """Tasks of 2 s: each survives with probability exp(-2 / 6), as exponential times have no memory."""
    history = simulate(
        timing(count=200, faults={"client_crash": CRASH}, policy={"kind": "deadline", "deadline_s": 2.5}).replace(
            {
                "network.downlink": {"kind": "constant", "value_s": 1.0},
                "network.uplink": {"kind": "constant", "value_s": 1.0},
                "devices.compute": "zero",
            }
        )
    )
    dropped = history.column("participations", "outcome") == "dropped"
    p = 1 - math.exp(-2 / 6)
    assert dropped.mean() == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / dropped.size))
    candidates = history.column("rounds", "candidates")
    assert candidates.mean() == pytest.approx(30, abs=5 * math.sqrt(40 * 0.75 * 0.25 / 200) * 2)


POLICIES = (
    {"kind": "deadline", "deadline_s": 1.8},
    {"kind": "k-fastest", "k": 6, "max_wait_s": 4.0},
    {"kind": "quorum", "share": 0.5, "max_wait_s": 5.0, "min_wait_s": 1.0},
    {"kind": "adaptive-deadline", "initial_s": 3.0},
    {"kind": "fedbuff", "buffer": 5, "concurrency": 10, "give_up_s": 4.0},
    {"kind": "fedasync", "concurrency": 10, "give_up_s": 4.0},
    {"kind": "safa", "share": 0.2, "max_wait_s": 5.0},
)
SYNCHRONOUS = POLICIES[:4]
NETWORKS = {
    "latency": {},
    "shared": {
        "network": {
            "kind": "cell",
            "downlink": {"sharing": "equal", "bandwidth_hz": 5e6},
            "uplink": {"sharing": "first-come", "bandwidth_hz": 5e6},
        }
    },
    "multicast": {"network": {"kind": "cell", "downlink": {"sharing": "multicast"}}},
}
RULES = [(policy, "cancel") for policy in POLICIES] + list(itertools.product(SYNCHRONOUS, ("drop", "stale", "partial")))
# Each over one network; all policies, late rules and faults over other networks are frozen (`fault/`).
CASES = [(*rule, [*NETWORKS][number % len(NETWORKS)]) for number, rule in enumerate(RULES)]


@pytest.mark.parametrize(
    ("policy", "late", "network"),
    by_default(CASES, CASES[: len(POLICIES) + 3]),
    ids=lambda value: value if isinstance(value, str) else value["kind"],
)
def test_under_every_rule_and_every_fault_a_round_that_a_crash_ends_uses_nothing(policy, late, network):
    """That each participation has a fate, and that rounds count them, are laws of all tables."""
    count = 100 if policy["kind"] == "fedasync" else 20
    history = simulate(timing(policy=policy, late=late, faults=ALL, count=count).replace(NETWORKS[network]))
    participations, rounds = history.participations.to_pandas(), history.rounds.to_pandas()
    crashed = rounds["ended_by"] == "restart"
    assert not participations["served_round"].isin(rounds["round"][crashed]).any()
    assert crashed.any()
    assert (np.diff(rounds["model_version"])[crashed.to_numpy()[1:]] == 0).all()
    # The next round begins when the server is back, at the earliest.
    gap_s = rounds["start_s"].to_numpy()[1:] - rounds["end_s"].to_numpy()[:-1]
    assert (gap_s[crashed.to_numpy()[:-1]] >= 1.5 - 1e-9).all()


def test_a_link_that_fails_while_a_client_may_not_send_yet_loses_nothing():
    effects = [{"kind": "duty-cycle", "share": 0.3}]
    rows = simulate(timing(faults={"link_outage": OUTAGE}, effects=effects, count=60)).participations.to_pandas()
    lost = rows[(rows["outcome"] == "dropped") & (rows["cut_in"] == "uplink")]
    assert len(lost) > 10
    assert lost["uplink_s"].min() > 0


@pytest.mark.parametrize("merging", ["synchronous", "asynchronous"])
@pytest.mark.parametrize(
    "policy",
    [pytest.param(POLICIES[0], id="deadline"), pytest.param(POLICIES[4], id="fedbuff", marks=pytest.mark.slow)],
)
def test_edge_servers_run_under_every_fault(policy, merging):
    edges = {
        "grouping": {"kind": "order", "count": 4},
        "rounds": 2,
        "merging": merging,
        "backhaul": {"kind": "link", "rate_bps": 1e7, "delay_s": 0.01},
    }
    faults = {**ALL, "server_restart": {"mean_up_s": 4.0, "down_s": 1.5}}
    policy = {**policy, "concurrency": 4, "buffer": 3} if "concurrency" in policy else policy
    chosen = timing(policy=policy, edges=edges, faults=faults, count=30)
    history = simulate(chosen.replace({"selector.cohort": 5}))
    participations, rounds = history.participations.to_pandas(), history.rounds.to_pandas()
    edge_rounds = history.edge_rounds.to_pandas()
    assert participations["fate"].notna().all()
    crashed = rounds[rounds["ended_by"] == "restart"]
    assert len(crashed) > 1
    for end_s in crashed["end_s"]:
        assert not ((edge_rounds["start_s"] < end_s) & (edge_rounds["end_s"] > end_s)).any()
        assert not ((participations["start_s"] < end_s) & (participations["end_s"] > end_s)).any()
        # The servers are down.
        assert not ((participations["start_s"] > end_s) & (participations["start_s"] < end_s + 1.5 - 1e-9)).any()
    # Those under way when an asynchronous run ends stand in no round.
    assert len(participations) >= edge_rounds["selected"].sum() == rounds["selected"].sum()


def test_a_scenario_without_faults_is_unchanged():
    assert "faults" not in timing().to_toml()
    assert timing().describe() == timing(faults={}).describe() | {"rounds": timing().describe()["rounds"]}
    assert simulate(timing()).participations.equals(simulate(timing(faults={})).participations)
    changed = timing(faults=ALL).replace({"rounds.faults.server_restart.down_s": 3.0})
    assert changed.rounds.faults.server_restart.down_s == 3.0


@pytest.mark.parametrize(
    "faults", [{"client_crash": CRASH}, {"link_outage": OUTAGE}], ids=lambda faults: next(iter(faults))
)
def test_waiting_for_all_is_refused_with_faults_of_clients(faults):
    with pytest.raises(ScenarioError, match=r"rounds\.policy: 'wait-for-all' is not allowed.*rounds\.faults.*deadline"):
        timing(policy="wait-for-all", faults=faults)
    with pytest.raises(ScenarioError, match="give_up_s"):
        timing(policy={"kind": "fedbuff", "concurrency": 3}, faults=faults)


def test_waiting_for_all_is_allowed_with_server_restarts():
    history = simulate(timing(policy="wait-for-all", faults={"server_restart": RESTART}))
    assert set(history.column("rounds", "ended_by")) == {"enough", "restart"}


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"server_restart": {"down_s": 1.0}}, r"rounds\.faults\.server_restart: .*needs either at_s or mean_up_s"),
        ({"server_restart": {"at_s": [3.0], "mean_up_s": 2.0, "down_s": 1.0}}, "needs either at_s or mean_up_s"),
        ({"server_restart": {"at_s": [], "down_s": 1.0}}, r"rounds\.faults\.server_restart\.at_s"),
        (
            {"server_restart": {"at_s": [5.0, 3.0], "down_s": 1.0}},
            r"at_s: 3\.0 is not after .* 5\.0 s; allowed: ascend",
        ),
        ({"server_restart": {"at_s": [5.0, 6.0], "down_s": 1.0}}, r"more than down_s = 1\.0 s apart"),
        ({"server_restart": {"at_s": [0.0], "down_s": 1.0}}, "greater than 0"),
        ({"server_restart": {"at_s": [4.0]}}, r"down_s: is missing"),
        ({"client_crash": {"mean_up_s": 1.0}}, r"rounds\.faults\.client_crash\.mean_down_s: is missing"),
        ({"link_outage": {"mean_up_s": 0.0, "mean_down_s": 1.0}}, r"link_outage\.mean_up_s: 0\.0 is not allowed"),
        ({"client_crashes": CRASH}, r"client_crashes: there is no such option \(did you mean 'client_crash'\?\)"),
    ],
)
def test_impossible_faults_are_refused(faults, message):
    with pytest.raises(ScenarioError, match=message):
        timing(faults=faults)
