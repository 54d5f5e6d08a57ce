"""What is said of a scenario before it runs."""

import re

import pytest

from fedsim import Scenario, simulate
from fedsim.errors import ScenarioError
from fedsim.network.radio.sionna import link
from fedsim.privacy import Privacy
from fedsim.scenario.doubts import doubts_of
from fedsim.scenario.noise import drowned
from tests.support.short_runs import TIMING

BITS = TIMING.replace({"learning": {"kind": "none", "model_bits": 1e4}, "rounds.count": 1})


@pytest.mark.parametrize(
    ("network", "words"),
    [
        ({"kind": "cell", "uplink": {"bandwidth_hz": 0.09}}, "uplink.bandwidth_hz = 0.09 Hz is unusual; usual: 1000"),
        ({"kind": "cell", "uplink": {"bandwidth_hz": 90e9}}, "uplink.bandwidth_hz = 9e\\+10 Hz is unusual"),
        ({"kind": "cell", "path_loss": {"kind": "free-space", "carrier_hz": 2.4}}, "path_loss.carrier_hz = 2.4 Hz is"),
        ({"kind": "fedscale", "median_kbps": [6e3] * 5 + [6e11]}, "median_kbps = 6e\\+11 kbit/s is unusual"),
        ({"kind": "satellite"}, "passes is simpler than the real thing: .*7 to 9 times too often"),
        ("lora", r" is simpler than the real thing: .*\(73 times too fast for 60 clients\)"),
        ("wifi-dcf", "both have the channel in full"),
        ({"kind": "fedscale", "transport": {"kind": "tcp", "loss": 0.01}}, "with losses messages take 2 to 6 times"),
    ],
)
def test_values_of_another_size_and_parts_that_are_off_are_named(network, words):
    scenario = BITS.replace({"network": network})
    (doubt,) = doubts_of(scenario)
    assert re.match(f"network.*{words}", doubt)


OPEN_LOOP = {"kind": "cell", "uplink": {"power_control": {"kind": "fractional", "p0_dbm": -90.0}}}


@pytest.mark.parametrize("network", ["cell", "urban-macro", "5g-midband", "nb-iot", "wifi", "fedscale", OPEN_LOOP])
def test_usual_networks_raise_no_doubt(network):
    assert doubts_of(BITS.replace({"network": network})) == ()


def test_the_notes_of_a_run_say_it(logged):
    history = simulate(BITS.replace({"network": {"kind": "satellite", "uplink_bps": 0.5}}))
    assert ["unusual" in history.notes[0], "Earth does not turn" in history.notes[1]] == [True, True]
    assert ["unusual" in message for message in logged].count(True) == 1


def test_the_second_table_of_sionna_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(link, "require_sionna", lambda _: None)
    cell = {"kind": "cell", "rate": {"kind": "sionna-phy", "table": 2}}
    with pytest.raises(ScenarioError, match=r"rate.table: 2 is not allowed; .*transform precoding.*allowed: 1"):
        BITS.replace({"network": cell})


def test_deadlines_that_lost_clients_make_longer_are_named():
    growing = BITS.replace({"rounds.policy": {"kind": "adaptive-deadline", "initial_s": 1.0}})
    losing = growing.replace({"devices.dropout": {"kind": "hazard", "rate_per_s": 0.1}})
    assert doubts_of(growing) == doubts_of(losing.replace({"rounds.policy.longest_s": 9.0})) == ()
    assert ["up to reach = 2 times the slowest delivery" in one for one in doubts_of(losing)] == [True]


def test_a_cohort_that_is_the_crowd_is_named():
    whole = BITS.replace({"selector.cohort": 6})
    (said,) = doubts_of(whole)
    assert said.startswith("selector.cohort = 6 is the whole crowd: every client that is there takes part, unless")
    for k, asked in (
        (3, "4 clients a round"),
        (9, "12 clients a round of crowd.clients = 6: all that are there take part"),
    ):
        (said,) = doubts_of(whole.replace({"rounds.policy": {"kind": "k-fastest", "k": k}}))
        assert said == f"selector.cohort = 6 is not used: rounds.policy asks for {asked}"


def test_a_target_that_ends_a_run_before_the_one_that_is_told_is_named():
    ends = Scenario.load("scenarios/quickstart.toml").replace({"rounds.target_accuracy": 0.7})
    (said,) = doubts_of(ends)
    assert said.startswith("rounds.target_accuracy = 0.7 ends the run before results.target_accuracy = 0.8")
    assert not doubts_of(ends.replace({"results.target_accuracy": 0.7}))
    assert not doubts_of(ends.replace({"rounds.target_accuracy": 0.9}))


ASYNCHRONOUS = {"rounds.policy": {"kind": "fedbuff", "concurrency": 3, "buffer": 2}}
EDGES = {"grouping": {"kind": "order", "count": 2}, "backhaul": "none"}


@pytest.mark.parametrize(
    ("releases", "told", "changes"),
    [
        (1, "1 updates .* about 2 of 50 rounds with cohorts of 3", {}),
        (30, None, {}),
        (30, "30 updates .* about 30 of 50 rounds with cohorts of 6", {"selector": "all"}),
        (2, "2 updates .* about 6 of 50 rounds with buffers of 2", ASYNCHRONOUS),
        (
            2,
            "2 updates .* about 3 of 50 rounds with cohorts of 4",
            {"rounds.policy": {"kind": "k-fastest", "k": 3}, "selector.cohort": 4},
        ),
        (2, "2 updates .* about 4 rounds of edge servers with cohorts of 3", {"rounds.edges": EDGES}),
    ],
)
def test_a_budget_that_ends_before_the_run_is_named(releases, told, changes):
    """Six clients, three a round: each takes part in every other round."""
    budget = {"kind": "uniform", "epsilon": 4.0, "releases": releases}
    privacy = {"budget": budget, "mechanism": {"kind": "laplace-coordinate", "delta_f": 0.1}}
    learning = {"data": {"kind": "digits", "train_limit": 60}, "model": {"kind": "mlp", "hidden": []}}
    private = TIMING.replace({"privacy": privacy, "learning": learning, "rounds.count": 50, **changes})
    found = doubts_of(private)
    assert len(found) == (told is not None)
    assert told is None or re.match(f"privacy.budget pays for {told}", found[0])


@pytest.mark.parametrize(
    ("mechanism", "cohort", "where", "ratio"),
    [
        # 800 numbers: 2 (2 clip / epsilon)^2 each over clip^2, in a mean of 4.
        ({"kind": "laplace-l1", "clip": 0.5}, 4, "client", 800 * 2 * 4 / 4),
        # Per number 2 (delta_f / epsilon)^2 over (delta_f / 2)^2: 8 times the energy of an update, in a mean of 4.
        ({"kind": "laplace-coordinate", "delta_f": 0.1}, 4, "client", 8 / 4),
        # The server's noise has a quarter of that energy, and is drawn once.
        ({"kind": "laplace-l1", "clip": 0.5}, 4, "server", 800 * 2 * 4 / 4 / 16),
        ({"kind": "laplace-coordinate", "delta_f": 0.1}, 9, "client", None),
    ],
)
def test_noise_that_no_update_can_exceed_is_named(mechanism, cohort, where, ratio):
    budget = {"kind": "uniform", "epsilon": 5.0, "releases": 5}
    privacy = {"mechanism": mechanism, "budget": budget, "where": where}
    scenario = BITS.replace({"crowd.clients": 10, "selector": {"kind": "uniform", "cohort": cohort}})
    scenario = scenario.model_copy(update={"privacy": Privacy(**privacy)})
    found = drowned(scenario, 800 * 32.0)
    assert [f"at least {ratio:.3g} times" in one for one in found] == [True] * (ratio is not None)
    assert drowned(BITS, 1e6) == ()
