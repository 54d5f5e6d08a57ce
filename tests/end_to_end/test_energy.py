"""Whole runs with batteries that run empty, over every network, with the audit looking on.

Those over every pair of sharing rules are frozen (`energy/` in `tests/golden/scenarios.py`).
"""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from fedsim import read_run, run, simulate
from fedsim.errors import ScenarioError
from fedsim.history.schema import ACCOUNTS
from fedsim.network import NETWORKS
from tests.support.families import by_family, module
from tests.support.options import NETWORK_OPTIONS
from tests.support.short_runs import timed

# 0.005 J down, 0.04 J of work and 0.044 J up for each participation, of at most 0.15 J.
BATTERY = {
    "kind": "battery",
    "capacity_j": 0.15,
    "initial_from": 0.05,
    "compute_w": 0.2,
    "charge_w": 0.004,
    "idle_w": 0.001,
    "least_charge": 0.02,
}


def scenario(**tables):
    usual = {
        "crowd": {"clients": 16, "placement": {"kind": "disc", "radius_m": 60.0}},
        "network": "cell",
        "devices": {"energy": BATTERY},
        "rounds": {"count": 6, "policy": {"kind": "deadline", "deadline_s": 20.0}},
    }
    return timed(bits=1e5, samples=20, cohort=6, **{**usual, **tables})


def check(history):
    outcome, energy_j = (history.column("participations", name) for name in ("outcome", "energy_j"))
    assert {"delivered", "dropped"} <= set(outcome)
    assert energy_j.min() > 0
    assert energy_j.max() <= 0.15
    assert history.accounts.schema.equals(ACCOUNTS.arrow)
    selected = np.unique(history.column("participations", "client"))
    end_s = history.column("rounds", "end_s")[-1]
    np.testing.assert_allclose(np.delete(history.column("accounts", "idle_s"), selected), end_s)


@pytest.mark.parametrize("kind", by_family(NETWORKS, module))
def test_batteries_run_empty_over_every_network(kind):
    check(simulate(scenario(network={"kind": kind, **NETWORK_OPTIONS.get(kind, {})})))


def test_batteries_change_no_other_luck():
    """In the first round, who has enough does the same with and without batteries."""
    full = {**BATTERY, "initial_from": 1.0}
    with_, without = (simulate(scenario(devices=devices)) for devices in ({"energy": full}, {}))
    times = ["client", "downlink_s", "compute_s", "uplink_s", "outcome"]
    first = [history.participations.to_pandas().query("round == 1")[times] for history in (with_, without)]
    assert first[0].equals(first[1])
    assert without.column("participations", "energy_j").max() == 0.0


def test_operations_are_those_that_the_learner_counts_on_its_model():
    """An mlp from 64 through 8 to 10: 2 (64 * 8 + 8 * 10) operations forward, three times that in training."""
    per_flop = 1e-6
    chosen = scenario(
        learning={
            "model": {"kind": "mlp", "hidden": [8]},
            "local": {"optimizer": "sgd", "learning_rate": 0.1, "batch_size": 20},
        },
        devices={
            "energy": {
                "kind": "battery",
                "capacity_j": 1000.0,
                "compute_j_per_flop": per_flop,
                "receive_j_per_bit": 0.0,
                "transmit_j_per_bit": 0.0,
            }
        },
        rounds={"count": 1, "policy": {"kind": "deadline", "deadline_s": 60.0}},
    )
    rows = simulate(chosen).participations.to_pylist()
    samples = 1437 // 16  # of the digits' training set, dealt out equally
    flops = 3 * 2 * (64 * 8 + 8 * 10) * samples
    assert rows
    assert all(row["energy_j"] == pytest.approx(flops * per_flop, rel=0.02) for row in rows)


@pytest.mark.parametrize(
    ("learning", "energy", "network", "said"),
    [
        ({}, {"compute_w": 1.0}, "pause-two-speed", r"learning\.model_bits.*\n?.*devices\.energy needs the size"),
        ({"model_bits": 1.0}, {"compute_j_per_flop": 1.0}, "pause-two-speed", r"learning\.samples_per_client"),
        (
            {"model_bits": 1.0, "samples_per_client": 3},
            {"compute_j_per_flop": 1.0},
            "pause-two-speed",
            r"learning\.flops_per_sample",
        ),
    ],
)
def test_sizes_are_not_guessed_where_nothing_is_learned(learning, energy, network, said):
    devices = {"compute": "zero", "energy": {"kind": "battery", "capacity_j": 1.0, **energy}}
    with pytest.raises(ScenarioError, match=said):
        scenario(learning={"kind": "none", **learning}, devices=devices, network=network)
    known = {"kind": "none", "model_bits": 1.0, "samples_per_client": 3, "flops_per_sample": 5.0}
    scenario(learning=known, devices=devices, network=network)


def test_an_audited_run_keeps_its_accounts_in_the_folder(tmp_path):
    history = run(scenario(), tmp_path / "audited")
    check(read_run(tmp_path / "audited"))
    table = pq.read_table(tmp_path / "audited" / "accounts.parquet")
    assert table.schema.equals(ACCOUNTS.arrow)
    assert table.equals(history.accounts)
    assert json.loads((tmp_path / "audited" / "run.json").read_text())["status"] == "finished"
    plain = run(scenario(results={"audit": False}), tmp_path / "plain")
    assert plain.accounts is None
    assert not (tmp_path / "plain" / "accounts.parquet").exists()
    assert read_run(tmp_path / "plain").accounts is None
    run(scenario(results={"audit": False}), tmp_path / "audited", replace=True)
    assert not (tmp_path / "audited" / "accounts.parquet").exists(), "nothing of another run is left"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["receive_j_per_bit", "transmit_j_per_bit"])
@pytest.mark.parametrize("kind", ["rate-traces", "satellite"])
def test_a_battery_that_pays_part_of_a_bit_is_no_alarm(kind, way):
    """The clock knows the end of a cut message to an ulp, in which a fast link carries more than rounding."""
    battery = {"kind": "battery", "capacity_j": 0.2, "initial_from": 0.5, "compute_w": 0.0, way: 0.3}
    network = {"kind": kind, **NETWORK_OPTIONS[kind]}
    learning = {"kind": "none", "model_bits": 1e6, "samples_per_client": 10}
    for seed in range(5):
        history = simulate(scenario(network=network, devices={"energy": battery}, learning=learning, seed=seed))
        assert set(history.column("participations", "outcome").tolist()) <= {"dropped", "late"}
