"""Metrics by name, on runs whose seconds and bits are counted by hand: client k delivers after k + 4 s."""

import math
from dataclasses import replace

import numpy as np
import pytest

from fedsim import Scenario, Testbed, simulate
from fedsim.errors import FedsimError
from fedsim.studies.comparing.comparison import compare
from fedsim.studies.metrics import Value, metric, spent
from fedsim.studies.study import Family
from tests.support.hand_made import by_hand
from tests.support.short_runs import LEARNING


@pytest.fixture(scope="module")
def timing():
    """Three rounds of all four clients: 7 s, 4 updates and 8e6 bits each."""
    return simulate(Scenario(**by_hand(selector="all", results={})))


@pytest.fixture(scope="module")
def learning():
    return simulate(Scenario.from_toml(LEARNING), store=False)


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("time_to_5updates", 14.0, "s"),
        ("rounds_to_8updates", 2.0, "rounds"),
        ("bits_to_12updates", 24e6, "bits"),
        ("mean_round_s", 7.0, "s"),
        ("round_s_p95", 7.0, "s"),
        ("participation_s_p99", 7.0, "s"),
        ("simulated_s", 21.0, "s"),
        ("rounds", 3.0, "rounds"),
        ("delivered_share", 1.0, ""),
        ("bits", 24e6, "bits"),
    ],
)
def test_values_by_hand(timing, name, value, unit):
    found = metric(name)
    assert (found.of(timing).value, found.of(timing).reached, found.unit) == (value, True, unit)


@pytest.mark.parametrize("name", ["energy_j", "joules_to_5updates", "largest_leakage", "mean_leakage"])
def test_what_a_run_has_not_is_no_nought(timing, name):
    """Without batteries no joules are known, and without privacy nothing bounds a leakage."""
    assert math.isnan(metric(name).of(timing).value)


def test_final_accuracies_are_those_at_the_budget_of_time(learning):
    ends_s, times_s = learning.column("rounds", "end_s"), learning.column("evaluations", "time_s")
    in_time = learning.column("evaluations", "accuracy")[times_s <= ends_s[-2]]
    cut = replace(learning, until_s=float(ends_s[-2]) + 1e-3)
    assert metric("final_accuracy").of(cut) == Value(in_time[-1])
    assert metric("last_accuracy").of(cut) == Value(in_time[-10:].mean())


def test_undelivered_participations_never_end():
    """Three of four clients deliver before a deadline of 6.5 s, after 4, 5 and 6 s."""
    rounds = {"count": 3, "policy": {"kind": "deadline", "deadline_s": 6.5}}
    history = simulate(Scenario(**by_hand(selector="all", results={}, rounds=rounds)))
    found = [metric(f"participation_s_p{percent}").of(history) for percent in (25, 75, 76)]
    assert found == [Value(4.0), Value(6.0), Value(math.inf, reached=False)]


def test_what_was_not_reached_says_how_far_the_run_was_watched(timing):
    assert metric("time_to_13updates").of(timing) == Value(21.0, reached=False, watched=21.0)
    assert metric("time_to_80%").of(timing).reached is False
    assert spent(timing, "bits", np.array([0.0, 4.0, 7.0])).tolist() == [0.0, 2e6, 8e6]


def test_accuracies_at_budgets_and_targets_by_any_metric(learning):
    at_s, accuracy = learning.curve()
    loss = learning.curve(y="loss")[1]
    assert metric(f"accuracy@{at_s[1]}s").of(learning).value == accuracy[1]
    just_less = float(np.nextafter(at_s[1], 0.0))
    assert metric(f"accuracy@{just_less!r}s").of(learning).value == accuracy[1]
    assert Value(just_less).within(at_s[1]).reached
    assert Value(at_s[1]).within(just_less).reached, "the clock shows rounded sums"
    assert Value(0.0, reached=False, watched=just_less).within(at_s[1]).value == at_s[1]
    assert metric("accuracy@2rounds").of(learning).value == accuracy[2]
    assert metric("loss@1e15bits").of(learning) == Value(
        loss[-1], reached=False, watched=metric("bits").of(learning).value, every=1
    )
    assert metric(f"time_to_loss<={loss[2] + 1e-9:.9f}").of(learning).value == at_s[np.argmax(loss <= loss[2] + 1e-9)]
    assert metric("final_accuracy").of(learning).value == accuracy[-1]
    assert math.isnan(metric("jain").of(learning).value)


def test_rounds_that_end_at_one_instant_are_told_apart():
    """Nothing takes time, and the second of three rounds reaches 80 %."""
    network = {"kind": "latency", **dict.fromkeys(("downlink", "uplink"), "zero")}
    with Testbed(by_hand(network=network, devices={"compute": "zero"}, results={})) as testbed:
        for accuracy in (0.5, 0.9, 0.7):
            testbed.round([0, 1])
            testbed.report(accuracy=accuracy)
    history, names = testbed.finish(), ("rounds_to_80%", "accuracy@1rounds", "rounds_to_3updates")
    assert [metric(name).of(history).value for name in names] == [2.0, 0.5, 2.0]
    assert history.explain()["rounds"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *((name, "accuracies above 0, up to 100%") for name in ("time_to_180%", "bits_to_accuracy>=80", "time_to_0%")),
        *((name, "a budget above 0, and finite") for name in ("accuracy@0s", "loss@1e999bits")),
        ("mean_rounds_s", r"'mean_rounds_s' is not known \(did you mean 'mean_round_s'\?\); allowed: names as"),
        ("time_to_80", "did you mean 'time_to_80%'"),
    ],
)
def test_names_that_are_none_are_refused(name, words):
    with pytest.raises(FedsimError, match=words):
        metric(name)


def test_runs_whose_models_were_evaluated_at_other_intervals_are_not_compared(learning):
    rare = simulate(
        Scenario.from_toml(LEARNING).replace({"results.evaluate_every": 2, "seed": learning.seed}), store=False
    )
    family = Family(("each", "second"), (0,), ("accuracy@1s", "final_accuracy"), "each", {}, 0.95)
    runs = {"each": learning, "second": rare}
    at, final = compare(family, lambda name: {(arm, 0): metric(name).of(run) for arm, run in runs.items()}).lines
    assert at.paired.refused == "models were evaluated every 1 rounds and every 2: set one results.evaluate_every"
    assert "evaluated" not in final.paired.refused
