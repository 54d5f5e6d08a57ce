"""Least numbers of updates that a scenario's rounds can never have, and the largest ones that they can."""

import pytest

from fedsim import Scenario
from fedsim.errors import ScenarioError
from fedsim.selectors import Uniform

TABLES = {
    "name": "numbers",
    "crowd": {"clients": 10},
    "learning": "none",
    "network": {"kind": "pause-two-speed"},
    "devices": {"compute": "zero"},
}
K_FASTEST = {"kind": "k-fastest", "k": 2, "over_selection": 2.0}


def scenario(selector, **rounds):
    return Scenario(**TABLES, rounds={"count": 1, **rounds}, selector=selector)


def of(kind, cohort):
    return {"kind": kind, "cohort": cohort}


@pytest.mark.parametrize(
    ("selector", "rounds", "most", "words"),
    [
        ("all", {}, 10, "crowd.clients = 10"),
        ("all", {"late": "stale"}, 10, "crowd.clients = 10"),
        (of("uniform", 5), {}, 5, "selector.cohort = 5"),
        (Uniform(cohort=5), {}, 5, "selector.cohort = 5"),
        (of("importance", 5), {}, 10, "crowd.clients = 10"),
        (of("aocs", 5), {}, 10, "crowd.clients = 10"),
        (of("uniform", 5), {"late": "stale"}, 10, "crowd.clients = 10"),
        ("all", {"policy": K_FASTEST}, 2, "rounds.policy.k = 2"),
        ("all", {"policy": K_FASTEST, "late": "stale"}, 10, "crowd.clients = 10"),
        (of("uniform", 1), {"policy": K_FASTEST}, 2, "rounds.policy.k = 2"),
        ("all", {"policy": {"kind": "safa", "share": 0.5, "max_wait_s": 1.0}}, 10, "crowd.clients = 10"),
    ],
)
def test_a_least_number_of_updates_that_no_round_reaches_is_refused(selector, rounds, most, words):
    assert scenario(selector, minimum_updates=most, **rounds).rounds.minimum_updates == most
    with pytest.raises(ScenarioError) as refused:
        scenario(selector, minimum_updates=most + 1, **rounds)
    assert str(refused.value) == (
        f"rounds.minimum_updates: {most + 1} is not allowed; a round has never more updates than {words}; "
        f"allowed: 1 to {most}"
    )


def test_a_buffer_may_hold_several_updates_of_a_client():
    buffer = {"kind": "fedbuff", "concurrency": 3, "buffer": 12}
    assert scenario(of("uniform", 3), policy=buffer, minimum_updates=12).rounds.minimum_updates == 12


@pytest.mark.parametrize(
    ("clients", "rounds", "field"),
    [(10, {}, "crowd.clients: 10"), (20, {"policy": {"kind": "k-fastest", "k": 4}}, "rounds.policy.k: 4")],
)
def test_a_rule_that_needs_more_updates_than_there_are_is_refused_where_it_can_be_mended(clients, rounds, field):
    krum = {"data": "digits", "model": "logistic-regression", "aggregation": {"kind": "krum", "byzantine": 4}}
    tables = {**TABLES, "learning": krum, "crowd": {"clients": clients}}
    with pytest.raises(ScenarioError) as refused:
        Scenario(**tables, rounds={"count": 1, "minimum_updates": 11, **rounds}, selector="all")
    assert str(refused.value) == (
        f"{field} is not allowed; learning.aggregation = 'krum' needs at least 11 updates; allowed: at least as many"
    )
