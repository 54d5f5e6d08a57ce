"""What a part requires, another part must provide; all problems are named at once."""

from typing import ClassVar

import pytest

from fedsim import Component
from fedsim.capabilities import missing
from fedsim.errors import ScenarioError
from fedsim.network import NETWORKS
from fedsim.rounds.policies.late import Cancel
from tests.support.short_runs import timed


class Network(Component):
    """A network of the user's that states what it needs and gives by names of its own."""

    requires: ClassVar[frozenset[str]] = frozenset()
    provides: ClassVar[frozenset[str]] = frozenset({"multicast-groups"})

    def build(self, run):
        return NETWORKS.make({"kind": "latency", "downlink": "zero", "uplink": "zero"}).build(run)


class Silent(Component):
    """A network that does not state whether the size of a model matters."""

    def build(self, run):
        return Network().build(run)


class Late(Cancel):
    """A late rule that works with some networks only."""

    name: str

    @property
    def requires(self):
        return frozenset({self.name})


def scenario(network=Network, name="multicast-groups", **tables):
    rounds = {"count": 2, "policy": {"kind": "deadline", "deadline_s": 1.0}, "late": Late(name=name)}
    return timed(cohort=4, network=network(), **{"rounds": rounds, **tables})


def test_names_of_ones_own_are_provided_and_required():
    assert scenario().rounds.late.name == "multicast-groups"
    assert scenario(name="time-limit"), "a policy with a deadline provides it"
    assert missing(frozenset({"a", "b", "c"}), [frozenset({"b"}), frozenset()]) == ["a", "c"]


def test_a_required_name_that_nothing_provides_is_refused_with_the_closest_one():
    with pytest.raises(ScenarioError) as refused:
        scenario(name="multicast-group")
    assert "rounds.late: " in str(refused.value)
    assert "it requires 'multicast-group', which no part of this scenario provides" in str(refused.value)
    assert "did you mean 'multicast-groups'?" in str(refused.value)


class Alone(Cancel):
    """A late rule that goes with no network of multicast groups."""

    excludes: ClassVar[frozenset[str]] = frozenset({"multicast-groups"})


def test_what_a_part_excludes_is_refused_where_it_is_provided():
    rounds = {"count": 1, "late": Alone()}
    with pytest.raises(ScenarioError, match=r"network: .*it provides 'multicast-groups', which rounds\.late excludes"):
        scenario(rounds=rounds)
    assert scenario(rounds=rounds, network=lambda: "pause-two-speed", learning={"kind": "none", "model_bits": 1.0})


def test_a_network_must_state_whether_the_size_of_a_model_matters():
    with pytest.raises(ScenarioError, match=r"network: .* must say requires"):
        scenario(network=Silent)


def test_a_part_must_be_a_component():
    with pytest.raises(ScenarioError, match=r"network: .* must derive from fedsim\.Component, with the methods build"):
        scenario(network=object)
    for slot in ("network", "selector"):
        with pytest.raises(ScenarioError, match=rf"{slot}: .*it is a class; allowed: an object, Silent\(\.\.\.\), or"):
            scenario().replace({slot: Silent})


def test_all_problems_are_named_at_once():
    with pytest.raises(ScenarioError) as refused:
        scenario(
            name="tiers",
            crowd={"clients": 3},
            devices={
                "compute": {"kind": "flops", "flops_per_s": 1e9},
                "dropout": {"kind": "hazard", "rate_per_s": 0.1},
            },
            rounds={"count": 2, "policy": "wait-for-all", "late": "partial", "minimum_updates": 2},
        )
    lines = str(refused.value).splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "selector.cohort",
        "learning.flops_per_sample",
        "learning.samples_per_client",
        "rounds.policy",
        "rounds.late",
    ]
