"""A testbed whose cohorts are the selector's gives the tables of `simulate`, byte for byte."""

import itertools

import pytest

from fedsim import Scenario, simulate
from fedsim.errors import FedsimError
from fedsim.network import NETWORKS
from fedsim.rounds import POLICIES
from tests.golden.scenarios import OWN_LATE_RULE, PRESETS
from tests.support.field_values import write_files
from tests.support.options import NETWORK_OPTIONS
from tests.support.random_scenarios import random_tables
from tests.support.scenario_fields import filled
from tests.support.seeded_draws import Seeded
from tests.support.stepped import driven, table_bytes

NO_LEARNING = {"kind": "none", "model_bits": 2e5, "samples_per_client": 50, "flops_per_sample": 1e6}
NETWORK_KINDS, POLICY_KINDS = sorted(NETWORKS.kinds()), sorted(POLICIES.kinds())
QUICK = {"rate": "shannon"}  # means over fading and coding take long to work out
# Each network and each policy at least once; late clients go on where the policy has no rule of its own for them.
FEW = [(network, POLICY_KINDS[i % len(POLICY_KINDS)]) for i, network in enumerate(NETWORK_KINDS)]


PRIVACY = {
    "budget": {"kind": "uniform", "epsilon": 3.0, "releases": 3},
    "mechanism": {"kind": "laplace-coordinate", "delta_f": 0.01},
}


@pytest.mark.parametrize(("network", "policy"), FEW)
def test_each_network_and_each_policy(network, policy):
    late = {} if policy in (*OWN_LATE_RULE, "pisces") else {"late": "stale"}
    crash = {"server_restart": {"at_s": [0.3], "down_s": 0.5}}
    rounds = {"count": 2, "policy": filled(POLICIES, policy), "faults": crash, **late}
    selector, crowd = {"kind": "uniform", "cohort": 3}, {"clients": 6}
    more = {"crowd": crowd, "selector": selector, "privacy": PRIVACY, "results": {"audit": True}}
    scenario = crossed(network, policy, seed=3, rounds=rounds, **more)
    assert table_bytes(driven(scenario)) == table_bytes(simulate(scenario))


def crossed(network, policy, **tables):
    return Scenario(
        **{
            "name": "crossed",
            "crowd": {"clients": 8},
            "learning": NO_LEARNING,
            "network": {"kind": network, **NETWORK_OPTIONS.get(network, QUICK if network in PRESETS else {})},
            "rounds": {"count": 4, "policy": filled(POLICIES, policy)},
            "selector": {"kind": "uniform", "cohort": 4},
            **tables,
        }
    )


@pytest.mark.slow
def test_a_scenario_that_learns():
    """Sizes and work are those of its model and its data, and nothing is trained: only evaluations are missing."""
    learning = {"data": {"kind": "digits", "train_limit": 200}, "model": {"kind": "mlp", "hidden": [16]}}
    scenario = crossed("cell", "deadline", learning=learning)
    stepped, own = table_bytes(driven(scenario)), table_bytes(simulate(scenario))
    assert own.pop("evaluations") != stepped.pop("evaluations")
    assert stepped == own


def random_scenario(number):
    tables = random_tables(Seeded(number))
    tables["learning"] = {**NO_LEARNING, "samples_per_client": 10}
    if isinstance(tables["rounds"], dict):
        tables["rounds"].pop("edges", None)
    try:
        return Scenario(**tables)
    except FedsimError:
        return None


def said(call):
    try:
        return table_bytes(call())
    except FedsimError as error:
        return str(error)


@pytest.fixture
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("first", [0, pytest.param(2_000, marks=pytest.mark.slow)])
def test_random_scenarios(first):
    """Faults, batteries, privacy, secure aggregation and questions of selectors among them."""
    scenarios = (scenario for number in itertools.count(first) if (scenario := random_scenario(number)) is not None)
    for scenario in itertools.islice(scenarios, 10):
        stepped = said(lambda scenario=scenario: driven(scenario))
        if "asks clients a question first" not in stepped:
            assert stepped == said(lambda scenario=scenario: simulate(scenario)), scenario
