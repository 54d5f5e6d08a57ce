"""What views show of batteries, of the radio and of what comes: by hand, and as the run then goes."""

import numpy as np
import pytest

from fedsim import simulate
from fedsim.selectors import Cohort, PublishedSelector, RoundView
from tests.support.short_runs import timed

LATENCY = {
    "kind": "latency",
    "downlink": {"kind": "constant", "value_s": 1.0},
    "uplink": {"kind": "constant", "value_s": 1.0},
}
CELL = {"kind": "cell", "fading": {"kind": "rayleigh", "coherence_s": 1e6}, "access": {"kind": "none"}}
BATTERY = {
    "kind": "battery",
    "capacity_j": 100.0,
    "initial_from": 0.5,
    "initial_to": 0.5,
    "receive_j_per_bit": 1e-6,
    "transmit_j_per_bit": 2e-6,
    "transmit_w": 0.5,
    "compute_w": 3.0,
    "charge_w": 0.25,
}
COMPUTE = {"kind": "rate", "samples_per_s": 100.0, "jitter_sigma": 0.0, "spread_sigma": 0.0}
DEADLINE = {"kind": "deadline", "deadline_s": 60.0}
COLUMNS = ("fading_gain", "full_power_dbm", "charge_j", "capacity_j", "charging_w", "participation_j")


def noting(*names, oracle=False):
    """Return a selector of the first two candidates, what it reads of each view, and what views then hold."""
    seen, held = [], []

    class Notes(PublishedSelector):
        def select(self, view, rng):
            seen.append({name: getattr(view, name) for name in names})
            if "stays" in names:
                seen[-1]["stays"] = view.stays(0.0, 2.0).tolist()
            held.append(set(vars(view)))
            return Cohort(view.client[:2].copy())

    Notes.oracle = oracle
    return Notes(), seen, held


def run(selector, network=LATENCY, energy=BATTERY, **tables):
    usual = {"devices": {"compute": COMPUTE, "energy": energy}, "rounds": {"count": 2, "policy": DEADLINE}}
    return simulate(timed(clients=4, bits=1e6, samples=50, network=network, selector=selector, **{**usual, **tables}))


@pytest.mark.parametrize("availability", ["always", {"kind": "markov", "mean_on_s": 1e9, "mean_off_s": 1e-3}])
def test_batteries_by_hand(availability):
    selector, seen, _ = noting(*COLUMNS)
    run(selector, devices={"availability": availability, "compute": COMPUTE, "energy": BATTERY})
    first, second = seen
    assert first["fading_gain"] is None
    # 1e6 bits at 1 and 2 microjoules, a second on the air at 0.5 W, half a second of work at 3 W.
    np.testing.assert_allclose(first["participation_j"], [1 + 2 + 0.5 + 1.5] * 4)
    assert first["charge_j"].tolist() == [50.0] * 4
    assert first["capacity_j"].tolist() == [100.0] * 4
    assert first["charging_w"].tolist() == [0.25] * 4
    # Two paid 5 J; the others charged for the 2.5 s of the round.
    np.testing.assert_allclose(second["charge_j"], [45, 45, 50 + 2.5 * 0.25, 50 + 2.5 * 0.25])
    with pytest.raises(ValueError, match="read-only"):
        second["charge_j"][0] = 1.0


def test_a_column_that_is_not_read_is_not_made():
    selector, _, held = noting("charge_j")
    run(selector)
    assert all("charge_j" in names and not {"capacity_j", "participation_j"} & names for names in held)


def test_without_batteries_and_without_radio_there_are_none():
    selector, seen, _ = noting(*COLUMNS, "coming_energy_j", oracle=True)
    run(selector, energy="none")
    assert seen[0] == dict.fromkeys([*COLUMNS, "coming_energy_j"])


def test_the_gain_is_the_one_that_uploads_meet():
    selector, seen, _ = noting("fading_gain", "snr_hz")
    shannon = {"rate": {"kind": "shannon", "snr_gap_db": 0.0, "ceiling": "none"}, "uplink": {"bandwidth_hz": 1e6}}
    history = run(selector, {**CELL, **shannon}, "none")
    snr = seen[0]["snr_hz"] * seen[0]["fading_gain"] / 1e6
    uplink_s = history.column("participations", "uplink_s")[:2]
    # Propagation takes up to 3 us.
    np.testing.assert_allclose(uplink_s, 1e6 / (1e6 * np.log2(1 + snr[:2])), atol=3e-6)


@pytest.mark.parametrize("network", [LATENCY, CELL])
@pytest.mark.parametrize("policy", [DEADLINE, {"kind": "fedasync", "concurrency": 2, "give_up_s": 60.0}])
def test_an_oracle_knows_the_upload_the_joules_and_the_duration_that_come(network, policy):
    selector, seen, _ = noting("coming_uplink_s", "coming_energy_j", "coming_duration_s", "stays", oracle=True)
    history = run(selector, network, rounds={"count": 1, "policy": policy})
    rows = history.participations.slice(0, 1).to_pylist()
    assert seen[0]["stays"] == [True] * 4
    for row in rows:
        assert seen[0]["coming_duration_s"]()[row["client"]] == pytest.approx(row["end_s"] - row["start_s"], rel=1e-9)
        assert seen[0]["coming_uplink_s"]()[row["client"]] == pytest.approx(row["uplink_s"], rel=1e-9)
        assert seen[0]["coming_energy_j"]()[row["client"]] == pytest.approx(row["energy_j"], rel=1e-9)


def test_a_plain_view_has_columns_of_its_own():
    known = {name: np.zeros(1) for name in ("samples", "participations", "last_duration_s", "last_loss")}
    view = RoundView(
        round=1, time_s=0.0, clients=1, client=np.zeros(1, int), total_samples=1, privacy_spent=np.zeros(1),
        privacy_budget=None, features=np.zeros((1, 0)), at_request={"charge_j": lambda: np.array([3.0])}, **known,
    )  # fmt: skip
    assert view.charge_j.tolist() == [3.0]
    assert view.at_edge(np.array([0]), 1).charge_j.tolist() == [3.0]
