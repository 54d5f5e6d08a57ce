"""Every policy with every late rule over every kind of network with every selector, and the audit looking on."""

from contextlib import suppress
from functools import cache

import pytest

from fedsim import Scenario, simulate
from fedsim.errors import ScenarioError
from fedsim.rounds import LATE, POLICIES
from fedsim.selectors import SELECTORS
from tests.golden import scenarios as golden
from tests.support.families import by_default, first_kinds

ROUNDS = 2
# One rule of nine with each pair of network and selector; with ten networks each rule meets each selector.
SHARE = 9
CLIENTS = 5
# Selectors whose clients draw samples; some rules are refused with them.
DRAWING = {"fedsampling", "fixed-ratio"}
POLICY_TABLES = {kind: tables[0] for kind, tables in golden.POLICIES.items()} | {
    "pisces": {**golden.PISCES, "bound": 2}
}
CELLS = (*golden.SHARING, "multicast", "multicast-dedicated")
NAMES = ("latency", "fedscale", "graph", *(f"cell-{rule}" for rule in CELLS))
NETWORKS = {name: golden.NETWORKS[name] for name in NAMES}


def scenario(network, kind, rounds):
    names = SELECTORS.option_names(kind)
    options = {
        name: value for name, value in {**golden.ALL_SELECTORS.get(kind, [{}])[0], "cohort": 3}.items() if name in names
    }
    return Scenario(
        name="combination",
        crowd={"clients": CLIENTS, "placement": {"kind": "disc", "radius_m": 60.0}},
        learning={"kind": "none", "model_bits": 3e5, "samples_per_client": 50},
        network=network,
        rounds={"count": ROUNDS, **rounds},
        selector={"kind": kind, **options},
        results={"audit": True},
    )


@cache
def rules():
    """Return every policy with every late rule that a scenario allows beside it, as built parts."""
    pairs = []
    for kind in sorted(POLICIES.builtin):
        for late in sorted(LATE.builtin):
            rounds = {"policy": POLICY_TABLES[kind], "late": golden.LATE[late][1 if late == "stale" else 0]}
            with suppress(ScenarioError):
                built = scenario("pause-two-speed", "uniform", rounds).rounds
                pairs.append((built.policy, built.late))
    return pairs


def test_all_rules_meet():
    """Six policies take four late rules, but for partial work where nobody is late; four have their own."""
    assert set(POLICY_TABLES) == set(POLICIES.builtin)
    assert len(rules()) == 6 * 4 - 1 + 4


ALL = [(network, kind) for network in sorted(NETWORKS) for kind in sorted(SELECTORS.builtin)]
# A selector of each family over one network, and each network at least once.
FEW = {(sorted(NETWORKS)[number % len(NETWORKS)], kind) for number, kind in enumerate(first_kinds(SELECTORS))}


@pytest.mark.parametrize(("network", "kind"), by_default(ALL, FEW))
def test_a_share_of_all_combinations_runs_without_a_violation(network, kind):
    """Every network meets every selector, and every rule meets every network and every selector."""
    first = (sorted(NETWORKS).index(network) + sorted(SELECTORS.builtin).index(kind)) % SHARE
    fates = set()
    for policy, late in rules()[first::SHARE]:
        if kind in DRAWING and (policy.has_own_aggregation or late.least_share < 1):
            with pytest.raises(ScenarioError, match="draw samples in each round"):
                scenario(NETWORKS[network], kind, {"policy": policy, "late": late})
            continue
        whole = scenario(NETWORKS[network], kind, {"policy": policy, "late": late})
        if kind == "all-compute" and policy.traits.concurrency is not None:
            with pytest.raises(ScenarioError, match="norms of updates, not to be had at an asynchronous server"):
                simulate(whole)
            continue
        history = simulate(whole)
        assert history.rounds.num_rows == ROUNDS
        assert history.participations.num_rows == history.column("rounds", "selected").sum()
        fates |= set(history.column("participations", "fate"))
    assert {"used", "stale-used"} & fates or (kind in DRAWING and not fates)
