"""Round trips: the log of a simulated run gives its own laws back, within the standard errors of its size."""

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.calibration import calibrate, read_log
from fedsim.errors import FedsimError
from fedsim.results import run

SIZES = {"crowd": {"clients": 60}, "rounds": {"count": 150}, "selector": {"kind": "uniform", "cohort": 15}}
LEARNING = {"kind": "none", "samples_per_client": 50}


def logged(folder, **tables):
    """Run a scenario, and return the log of its run folder."""
    scenario = Scenario(name="known", **{**SIZES, "learning": LEARNING, **tables})
    run(scenario, folder, tell=None)
    return read_log(folder)


def near(found, errors, wanted, factor=3.5):
    """Compare parameters within a multiple of their standard errors."""
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value, abs=factor * errors[name]), name


@pytest.mark.statistical
def test_latency_compute_and_dropout_come_back(tmp_path):
    log = logged(
        tmp_path / "run",
        seed=5,
        network={
            "kind": "latency",
            "downlink": {"kind": "shifted-exponential", "shift_s": 0.5, "scale_s": 0.3},
            "uplink": {"kind": "log-normal", "median_s": 1.0, "sigma": 0.5},
        },
        devices={
            "compute": {"kind": "rate", "samples_per_s": 20.0, "spread_sigma": 0.4, "jitter_sigma": 0.2},
            "dropout": {"kind": "hazard", "rate_per_s": 0.02},
        },
        rounds={"count": 150, "policy": {"kind": "deadline", "deadline_s": 8.0}},
    )
    found = calibrate(log, samples=50, rounds=40)
    down, work, up = found.phases
    assert (down.fit.kind, work.fit.kind, up.fit.kind) == ("shifted-exponential", "log-normal", "log-normal")
    near(down.fit.options, down.fit.errors, {"shift_s": 0.5, "scale_s": 0.3})
    near(up.fit.options, up.fit.errors, {"median_s": 1.0, "sigma": 0.5})
    compute = found.scenario.devices.compute
    assert compute.jitter_sigma == pytest.approx(0.2, abs=3.5 * work.fit.errors["sigma"])
    assert compute.spread_sigma == pytest.approx(0.4, abs=3.5 * work.effects.spread_error)
    error = work.fit.errors["median_s"] / work.fit.options["median_s"]
    assert np.log(compute.samples_per_s / 20.0) == pytest.approx(0.0, abs=3.5 * error)
    near(found.presence.dropout, found.presence.errors, {"rate_per_s": 0.02})
    assert found.scenario.learning.samples_per_client == 50
    assert found.scenario.rounds.policy.deadline_s == pytest.approx(8.0)
    assert found.scenario.selector.options["cohort"] == 15
    assert [one.title.split(",")[0] for one in found.agreements] == ["participations that delivered", "rounds"] * 2
    assert all(abs(one.means_s[0] / one.means_s[1] - 1) < 0.15 for one in found.agreements)
    # What was written can be read, and runs.
    assert simulate(Scenario.from_toml(found.scenario.to_toml()).replace({"rounds.count": 2})).rounds.num_rows == 2


@pytest.mark.statistical
def test_one_factor_of_a_client_in_both_directions_comes_back(tmp_path):
    law = {"kind": "log-normal", "median_s": 1.0, "sigma": 0.3}
    log = logged(tmp_path / "run", network={"kind": "latency", "downlink": law, "uplink": law, "spread_sigma": 0.5})
    found = calibrate(log, rounds=20)
    error = found.phases[0].effects.spread_error
    assert found.scenario.network.spread_sigma == pytest.approx(0.5, abs=3.5 * error)
    # The median of 60 factors has the error 0.5 / sqrt(60).
    assert np.log(found.scenario.network.uplink.median_s) == pytest.approx(
        0.0, abs=3.5 * 0.5 / np.sqrt(60) + 0.5 * error
    )
    by_client = calibrate(log, by="client", rounds=20)
    factors = np.array(by_client.scenario.network.uplink_factor)
    alike = np.corrcoef(np.log(factors), np.log(by_client.scenario.network.downlink_factor))[0, 1]
    # 37 times of each client: the noise of a centre is a tenth of the spread.
    assert alike > 0.95
    assert np.log(factors).std() == pytest.approx(0.5, abs=3.5 * error)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("availability", "wanted"),
    [
        ({"kind": "markov", "mean_on_s": 40.0, "mean_off_s": 60.0}, {"mean_on_s": 40.0, "mean_off_s": 60.0}),
        ({"kind": "bernoulli", "probability": 0.6}, {"probability": 0.6}),
    ],
)
def test_availability_comes_back(availability, wanted, tmp_path):
    law = {"kind": "log-normal", "median_s": 2.0, "sigma": 0.3}
    log = logged(
        tmp_path / "run",
        network={"kind": "latency", "downlink": {"kind": "constant", "value_s": 1.0}, "uplink": law},
        devices={"availability": availability, "compute": "zero"},
        rounds={"count": 400, "policy": {"kind": "deadline", "deadline_s": 10.0}},
    )
    found = calibrate(log, clients=60, rounds=50)
    assert found.presence.availability["kind"] == availability["kind"]
    near(found.presence.availability, found.presence.errors, wanted)
    assert found.scenario.network.downlink.value_s == pytest.approx(1.0)
    assert found.phases[1].fit.kind == "zero"


def test_a_jitter_that_fedsim_has_no_law_for_is_a_table_of_factors(tmp_path):
    """Work takes one of two times, whatever the client: two factors, 2/3 and 4/3."""
    place = tmp_path / "log.csv"
    rng = np.random.default_rng(4)
    lines = [f"{i % 20},{rng.choice([1.0, 2.0]) + 0.01 * rng.random()}" for i in range(1000)]
    place.write_text("client,compute_s\n" + "\n".join(lines))
    found = calibrate(read_log(place), rounds=50)
    compute = found.scenario.devices.compute
    assert sorted({round(value, 1) for value in compute.jitter.values}) == [0.7, 1.3]
    assert 100e6 / compute.flops_per_s == pytest.approx(1.505, rel=0.05)  # seconds of 100 samples


def test_each_class_has_its_speed(tmp_path):
    place = tmp_path / "log.csv"
    rng = np.random.default_rng(4)
    rows = [(i % 20, "old" if i % 20 < 5 else "new") for i in range(800)]
    times_s = [(4.0 if kind == "old" else 1.0) * np.exp(0.1 * rng.standard_normal()) for _, kind in rows]
    lines = [f"{client},{kind},{time_s}" for (client, kind), time_s in zip(rows, times_s, strict=True)]
    place.write_text("client,class,compute_s\n" + "\n".join(lines))
    found = calibrate(read_log(place), by="class", rounds=50)
    speeds = np.array(found.scenario.devices.compute.samples_per_s)
    # 200 and 600 times with a scatter of 0.1.
    assert np.log(speeds[5:].mean() / speeds[:5].mean()) == pytest.approx(np.log(4), abs=3.5 * 0.1 / np.sqrt(200))
    assert len(set(speeds.tolist())) == 2
    place.write_text(place.read_text() + "\n0,new,1.0")
    with pytest.raises(FedsimError, match="class: client 0 has several; allowed: one for each client in all rows"):
        calibrate(read_log(place), by="class")


def test_rounds_that_end_at_their_deadline_agree_whatever_the_digits_of_the_clock(tmp_path):
    """A downlink of 0.1 s for all, and uplinks of which a quarter is too long for 1.7 s: most rounds end then."""
    log = logged(
        tmp_path / "run",
        network={
            "kind": "latency",
            "downlink": {"kind": "constant", "value_s": 0.1},
            "uplink": {"kind": "log-normal", "median_s": 1.0, "sigma": 0.7},
        },
        devices={"compute": "zero"},
        rounds={"count": 60, "policy": {"kind": "deadline", "deadline_s": 1.7}},
    )
    found = calibrate(log, rounds=100)
    assert found.phases[0].effects.spread_sigma == 0.0
    rounds = [one for one in found.agreements if one.title.startswith("rounds")]
    assert all(one.distance < 0.2 and one.p_value > 0.2 for one in rounds)


def test_notes_name_what_is_simulated_where_a_log_has_no_rounds(tmp_path):
    """Of three clients; participations of at most 1.39 s, of which one is late."""
    place = tmp_path / "log.csv"
    lines = [f"{i % 3},{1 + i / 100},{'late' if i == 7 else '' if i == 8 else 'delivered'}" for i in range(40)]
    place.write_text("client,uplink_s,outcome\n" + "\n".join(lines))
    found = calibrate(read_log(place), rounds=20)
    assert found.scenario.selector.options["cohort"] == 3
    said = " ".join(found.notes)
    assert "cohorts of 3 are simulated" in said
    assert "log.csv: 1 rows have no outcome: they are taken to have delivered" in said
    assert "a deadline of 13.9 s, ten times the longest participation, is taken" in said


def test_policy_and_selector_of_a_base_are_kept(tmp_path):
    place = tmp_path / "log.csv"
    place.write_text("client,uplink_s\n" + "\n".join(f"{i % 10},{1 + i / 100}" for i in range(100)))
    base = Scenario(name="base", **{**SIZES, "learning": LEARNING, "network": "pause-two-speed"}).replace(
        {"rounds.policy": {"kind": "k-fastest", "k": 3}, "selector.cohort": 5}
    )
    found = calibrate(read_log(place), base=base, clients=40, rounds=20)
    assert found.scenario.rounds.policy == base.rounds.policy
    assert found.scenario.selector.options["cohort"] == 5
    assert found.scenario.crowd.clients == 40
