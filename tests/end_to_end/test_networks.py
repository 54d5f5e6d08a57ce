"""Every network, sharing rule and availability law carries a run from end to end, with the audit looking on."""

import itertools

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.devices import AVAILABILITIES
from tests.support.families import by_default, by_family, module
from tests.support.options import NETWORK_OPTIONS

AVAILABILITY_OPTIONS = {
    "bernoulli": {"probability": 0.5},
    "markov": {"mean_on_s": 60.0, "mean_off_s": 30.0},
    "traces": {"path": "intervals.csv", "period_s": 86400.0},
}
# Half the day there, half not, for two devices; seconds.
INTERVALS = "device,start_s,end_s\na,0,43200\nb,21600,64800\n"


def scenario(**tables):
    return Scenario(
        **{
            "name": "end-to-end",
            "crowd": {"clients": 12, "placement": {"kind": "disc", "radius_m": 60.0}},
            "learning": {"kind": "none", "model_bits": 1e5, "samples_per_client": 20},
            "network": "cell",
            "rounds": {"count": 4, "policy": {"kind": "deadline", "deadline_s": 30.0}},
            "selector": {"kind": "uniform", "cohort": 4},
            "results": {"audit": True},
            **tables,
        }
    )


def check(history):
    rows = history.participations.to_pylist()
    assert history.rounds.num_rows == 4
    assert any(row["outcome"] == "delivered" for row in rows)
    for row in rows:
        phases_s = row["downlink_s"] + row["compute_s"] + row["uplink_s"] + row["queue_s"]
        assert row["end_s"] - row["start_s"] == pytest.approx(phases_s, abs=1e-6)
        assert row["end_s"] - row["start_s"] <= 30.0 + 1e-6


RADIOS = list(itertools.product(["cell", "urban-macro", "nb-iot"], ["dedicated", "shared"]))


@pytest.mark.parametrize(("cell", "spectrum"), by_default(RADIOS, RADIOS[:2]))
def test_moving_clients_of_a_graph_with_a_radio_carry_a_run_twice_the_same(cell, spectrum):
    network = {
        "kind": "graph",
        **NETWORK_OPTIONS["graph"],
        "access": {"kind": "radio", "cell": cell, "spectrum": spectrum, "delay_s": 0.005},
        "mobility": {"kind": "random-waypoint", "radius_m": 80.0, "slowest_m_per_s": 5.0, "fastest_m_per_s": 20.0},
        "handover": {"reselect_after_s": 0.5, "hysteresis_db": 1.0},
        "interruption_s": 0.05,
        "trouble": [
            *NETWORK_OPTIONS["graph"]["trouble"],
            {"kind": "loss", "node": "bs-0", "from_s": 0.5, "duration_s": 4.0},
        ],
    }
    history = simulate(scenario(network=network))
    check(history)
    assert history.participations.equals(simulate(scenario(network=network)).participations)


@pytest.mark.parametrize("kind", by_family(AVAILABILITIES, module))
def test_every_availability_law_carries_a_run(kind, tmp_path):
    (tmp_path / "intervals.csv").write_text(INTERVALS)
    options = dict(AVAILABILITY_OPTIONS.get(kind, {}))
    if "path" in options:
        options["path"] = str(tmp_path / options["path"])
    history = simulate(scenario(devices={"availability": {"kind": kind, **options}}))
    assert history.rounds.num_rows == 4
    candidates = history.column("rounds", "candidates")
    assert np.all((candidates >= 1) & (candidates <= 12))
    assert np.all(history.column("rounds", "selected") == np.minimum(candidates, 4))
