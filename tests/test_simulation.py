"""Whole runs: sameness, paired luck, laziness, and the paper's check points."""

import random

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.selectors import Cohort, Selector
from tests.support.short_runs import timed

PAUSE = {"kind": "pause", "cohort": 5, "tau_min_s": 0.05, "alpha": 100.0, "beta": 2.0, "gamma": 5.0, "zeta": 1.0}
PRIVACY = {
    "budget": {"kind": "geometric", "epsilon": 40.0, "eta": 0.04},
    "mechanism": {"kind": "laplace-coordinate", "delta_f": 0.012},
}
DIGITS = {
    "model": {"kind": "mlp", "hidden": [8]},
    "local": {"optimizer": "adam", "learning_rate": 0.01, "batch_size": 20, "keep_optimizer_state": True},
}
CELL = {
    "kind": "cell",
    "fading": {"kind": "rayleigh", "coherence_s": 0.02},
    "downlink": {"bandwidth_hz": 1e6, "transmit_power_dbm": 33.0},
    "uplink": {"bandwidth_hz": 1e5, "transmit_power_dbm": 23.0},
}


def scenario(**tables):
    return Scenario(
        **{
            "name": "test",
            "crowd": {"clients": 12},
            "learning": DIGITS,
            "network": CELL,
            "devices": {"compute": {"kind": "rate", "samples_per_s": 500.0}},
            "rounds": {"count": 6, "policy": {"kind": "deadline", "deadline_s": 1.0}},
            "selector": {"kind": "uniform", "cohort": 4},
            **tables,
        }
    )


def timing_only(**tables):
    return timed(cohort=5, **{"crowd": {"clients": 30}, "rounds": {"count": 300}, **tables})


def same(one, other):
    return (
        one.participations.equals(other.participations)
        and one.rounds.equals(other.rounds)
        and one.evaluations.equals(other.evaluations)
    )


def durations(history):
    """Return (round, client) -> phases of every delivered participation."""
    return {
        (row["round"], row["client"]): (row["downlink_s"], row["compute_s"], row["uplink_s"])
        for row in history.participations.to_pylist()
        if row["outcome"] == "delivered"
    }


def test_a_client_added_leaves_the_draws_of_the_others_alone():
    """Timing only, so that the further client changes no share of the data; the first round starts together."""
    learning = {"kind": "none", "model_bits": 5e5, "samples_per_client": 100}
    everybody = {"learning": learning, "selector": "all", "rounds": {"count": 1}}
    small = durations(simulate(scenario(**everybody)))
    large = durations(simulate(scenario(**everybody, crowd={"clients": 13})))
    assert len(small) == 12
    assert {key: large[key] for key in small} == small
    two_speed = {"rounds": {"count": 20}, "selector": "all"}
    laws = {"kind": "latency", "downlink": {"kind": "log-normal", "median_s": 1.0, "sigma": 0.5}, "uplink": "zero"}
    small = durations(simulate(timing_only(**two_speed, network=laws)))
    large = durations(simulate(timing_only(**two_speed, network=laws, crowd={"clients": 31})))
    assert len(small) == 600
    assert {key: large[key] for key in small} == small


def test_two_deadlines_face_the_same_weather():
    policies = [{"kind": "deadline", "deadline_s": seconds} for seconds in (0.6, 3.0)]
    strict, lax = (durations(simulate(scenario(rounds={"count": 1, "policy": policy}))) for policy in policies)
    common = strict.keys() & lax.keys()
    assert common
    assert len(lax) > len(strict)
    assert all(strict[key] == lax[key] for key in common)


def test_late_and_dropped_clients_are_never_trained():
    from fedsim.simulation import Simulation

    run = Simulation(
        scenario(
            devices={
                "compute": {"kind": "rate", "samples_per_s": 500.0},
                "dropout": {"kind": "hazard", "rate_per_s": 0.7},
            },
            rounds={"count": 8, "policy": {"kind": "deadline", "deadline_s": 0.5}},
        )
    )
    history = run.run()
    outcomes = [row["outcome"] for row in history.participations.to_pylist()]
    assert {"delivered", "late", "dropped"} <= set(outcomes)
    assert run.context.learner.work.trained == outcomes.count("delivered")


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("selector", "low", "high"),
    [
        # Facts of the authors' logs (one seed of 300 rounds each); the bands are theirs, widened by four standard
        # errors of the mean of 300 rounds, whose standard deviation is at most 0.2 s: 4 * 0.2 / sqrt(300) = 0.046.
        ({"kind": "fastest", "cohort": 5}, 0.14 - 0.02, 0.14 + 0.02),
        (PAUSE, 0.51 - 0.046, 0.56 + 0.046),
    ],
)
def test_mean_round_times_of_the_paper(selector, low, high):
    history = simulate(timing_only(crowd={"clients": 30}, selector=selector, privacy=PRIVACY))
    assert low < history.column("rounds", "duration_s").mean() < high


def test_accuracy_does_not_depend_on_what_is_written_or_watched():
    seen = []
    watched = simulate(scenario(), on_round=seen.append)
    assert same(watched, simulate(scenario()))
    assert [progress.round for progress in seen] == [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal([progress.time_s for progress in seen], watched.column("rounds", "end_s"))


class Careless(Selector):
    """Draws from the generators of the process, not from the one that it is given, and weighs as it is told."""

    def __init__(self, *weights):
        self.weights = weights or None

    def select(self, view, rng):
        drawn = np.random.permutation(random.sample(view.client.tolist(), 2))  # noqa: NPY002
        return Cohort(drawn, weights=self.weights)


@pytest.mark.parametrize(("weights", "total"), [([2, 2], "4"), ([0, 0], "0"), ([0.25, 0.75], ""), ([0.9, 0.9], "")])
def test_weights_that_make_no_mean_are_noted_once(weights, total):
    notes = simulate(timing_only(selector=Careless(*weights), rounds={"count": 2})).notes
    said = f"selector: the weights of Careless sum to {total} in round 1: the model moves by {total} times the mean"
    assert [note.startswith(said) for note in notes] == [True] * bool(total)


def test_the_generators_of_the_process_begin_at_the_seed_and_are_put_back():
    before = random.getstate()
    one, again, other = (
        simulate(timing_only(selector=Careless(), seed=seed, rounds={"count": 5})) for seed in (0, 0, 1)
    )
    assert same(one, again)
    assert not one.participations.equals(other.participations)
    assert random.getstate() == before


def test_clients_declare_features_to_a_selector_that_uses_them_and_to_no_other():
    """Constant laws of 2 s down and 3 s up, 50 samples at 25 a second: (2, 2, 3, 50) for everybody."""
    seen = {}

    class Looking:
        uses_features = True

        def select(self, view, rng):
            seen[self.uses_features] = view.features.copy()
            return view.client[:1]

        def observe(self, reports):
            pass

    class Plain(Looking):
        uses_features = False

    down, up = ({"kind": "constant", "value_s": value_s} for value_s in (2.0, 3.0))
    scenario = timed(
        clients=3,
        samples=50,
        network={"kind": "latency", "downlink": down, "uplink": up},
        devices={"compute": {"kind": "rate", "samples_per_s": 25.0, "spread_sigma": 0.0}},
        selector=Looking(),
    )
    simulate(scenario)
    simulate(scenario.replace({"selector": Plain()}))
    np.testing.assert_allclose(seen[True], [[2.0, 2.0, 3.0, 50.0]] * 3, rtol=1e-12)
    assert seen[False].shape == (3, 0)
