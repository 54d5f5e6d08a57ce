"""The width that fits the deadline: bits, seconds and outcomes of narrower models, worked out by hand.

The perceptron 16-h-3 has 20 h + 3 numbers: 5216, 2656 and 1376 bits for 8, 4 and 2 units, which take as many
milliseconds at 1 kbit/s. A client has 16 samples, and its work falls with the width as h does.
"""

from typing import Any

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.errors import ScenarioError
from fedsim.history.outcomes import Outcome
from fedsim.simulation import Simulation
from tests.support.tiny_images import Tiny

WIDTHS = {"kind": "heterofl", "widths": [1.0, 0.5, 0.25]}
RATES = [16.0, 1.6, 1.6, 0.16, 16.0, 0.4]
"""Samples per second: a client's whole work takes 1, 10, 10, 100, 1 and 40 s."""
COMPUTE = {"kind": "rate", "samples_per_s": RATES, "jitter_sigma": 0.0}


def scenario(**changes: Any) -> Scenario:
    learning = {
        "data": Tiny(),
        "model": {"hidden": [8]},
        "local": {"batch_size": 8},
        "algorithm": changes.pop("algorithm", WIDTHS),
    }
    tables: dict[str, Any] = {
        "name": "widths",
        "crowd": {"clients": 6},
        "learning": learning,
        "network": {"kind": "fedscale", **dict.fromkeys(("lowest_kbps", "median_kbps", "highest_kbps"), 1000 / 1024)},
        "devices": {"compute": COMPUTE},
        "rounds": {"count": 1, "policy": {"kind": "deadline", "deadline_s": 14.0}},
        "selector": {"kind": "all"},
        "results": {"audit": True},
    }
    return Scenario(**{**tables, **changes})


def run(**changes: Any) -> dict[int, dict[str, Any]]:
    history = simulate(scenario(**changes), store=False, executor="sequential")
    return {row["client"]: row for row in history.participations.to_pylist()}


def test_each_client_trains_the_largest_width_that_fits() -> None:
    found = run()
    # Whole: 10.432 s of radio and the work. Half: 5.312 s and half the work. A quarter: 2.752 s and a quarter of it.
    expected_s = {0: 5.216 + 1 + 5.216, 1: 2.656 + 5 + 2.656, 5: 1.376 + 10 + 1.376}
    bits = {0: 5216, 1: 2656, 2: 2656, 3: 1376, 4: 5216, 5: 1376}
    assert {client: row["downlink_bits"] for client, row in found.items()} == bits
    for client, seconds in expected_s.items():
        row = found[client]
        assert row["end_s"] - row["start_s"] == pytest.approx(seconds)
        assert row["uplink_bits"] == bits[client]
    delivered = {client for client, row in found.items() if row["outcome"] == Outcome.DELIVERED.name.lower()}
    assert delivered == {0, 1, 2, 4, 5}  # client 3 would take 27.752 s at a quarter


def test_without_a_deadline_all_train_the_whole_model() -> None:
    found = run(rounds={"count": 1, "policy": "wait-for-all"})
    assert {row["uplink_bits"] for row in found.values()} == {5216}
    assert found[3]["end_s"] == pytest.approx(110.432)


def test_given_widths_hold_whatever_the_deadline() -> None:
    given = {**WIDTHS, "client_widths": [0.25, 1.0, 0.5, 0.25, 0.5, 0.25]}
    found = run(algorithm=given)
    assert [found[client]["downlink_bits"] for client in range(6)] == [1376, 5216, 2656, 1376, 2656, 1376]
    assert found[0]["end_s"] == pytest.approx(1.376 + 0.25 + 1.376)
    assert found[1]["outcome"] == "late"


def test_energy_follows_the_bits_and_the_operations_of_the_width() -> None:
    energy = {
        "kind": "battery",
        "capacity_j": 1000.0,
        "receive_j_per_bit": 0.001,
        "transmit_j_per_bit": 0.002,
        "compute_j_per_flop": 0.01,
    }
    devices = {"compute": COMPUTE, "energy": energy}
    found = run(devices=devices)
    # Three passes of two operations for each of 19 h multiply-adds, for 16 samples.
    work_j = {0: 16 * 6 * 19 * 8 * 0.01, 1: 16 * 6 * 19 * 4 * 0.01}
    for client, bits in ((0, 5216), (1, 2656)):
        assert found[client]["energy_j"] == pytest.approx(0.003 * bits + work_j[client])


@pytest.mark.parametrize("sharing", [None, "equal"])
def test_shared_and_fading_links_carry_the_bits_of_each_width(sharing: str | None) -> None:
    downlink = {"bandwidth_hz": 2e4} if sharing is None else {"bandwidth_hz": 2e4, "sharing": sharing}
    network = {"kind": "cell", "downlink": downlink, "uplink": downlink}
    found = run(network=network, rounds={"count": 3, "policy": {"kind": "deadline", "deadline_s": 8.0}})
    assert {row["downlink_bits"] for row in found.values()} == {5216, 2656, 1376}


def test_partial_work_leaves_time_for_the_upload_of_the_width() -> None:
    """Client 3 stays at a quarter, has 27.752 s to do, and shortens its two batches to one: 1.376 + 12.5 + 1.376 s."""
    policy = {"kind": "deadline", "deadline_s": 15.3}
    late = {"kind": "partial", "least_work": 0.01}
    found = run(rounds={"count": 1, "policy": policy, "late": late})
    assert found[3]["end_s"] == pytest.approx(15.252)
    assert found[3]["outcome"] == "delivered"


def test_stale_updates_and_edge_servers_take_widths() -> None:
    stale = run(rounds={"count": 3, "policy": {"kind": "deadline", "deadline_s": 14.0}, "late": "stale"})
    assert len(stale) == 6
    edges = {"grouping": {"kind": "order", "count": 2}, "backhaul": "none"}
    flat = {"count": 2, "policy": {"kind": "deadline", "deadline_s": 14.0}}
    found = run(rounds={**flat, "edges": edges})
    assert found[5]["uplink_bits"] == 1376


def test_a_run_that_is_replayed_has_the_same_bytes_and_trains_nothing(tmp_path: Any) -> None:
    rounds = {"count": 3, "policy": {"kind": "deadline", "deadline_s": 14.0}}
    for kind in ("fedrolex", "scaffold"):
        first = Simulation(scenario(algorithm=kind, rounds={**rounds, "count": 2}), store=tmp_path / kind)
        first.run()
        whole = simulate(scenario(algorithm=kind, rounds=rounds), store=False, executor="sequential")
        again = Simulation(scenario(algorithm=kind, rounds=rounds), store=tmp_path / kind)
        history = again.run()
        assert history.evaluations.equals(whole.evaluations)
        assert history.participations.equals(whole.participations)
        work = again.context.learner.work
        assert work.trainings_found == first.context.learner.work.trained
        found, expected = (one.find_model(None, None).arrays for one in (history, whole))
        assert found.keys() == expected.keys()
        assert all(np.array_equal(one, expected[name]) for name, one in found.items())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"algorithm": {**WIDTHS, "client_widths": [1.0] * 5}}, "5 widths; allowed: one for each client"),
        ({"algorithm": {**WIDTHS, "client_widths": [0.7] * 6}}, "0.7 is not allowed"),
        (
            {"rounds": {"count": 1, "policy": {"kind": "safa", "max_wait_s": 9.0}}},
            "its average is that of whole models",
        ),
        (
            {"algorithm": "scaffold", "rounds": {"count": 1, "policy": {"kind": "fedasync", "concurrency": 2}}},
            "allowed: one synchronous server",
        ),
        (
            {
                "algorithm": "feddyn",
                "privacy": {
                    "budget": {"kind": "geometric", "epsilon": 1.0},
                    "mechanism": {"kind": "laplace-l1", "clip": 1.0},
                },
            },
            "allowed: no privacy",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_in_words(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        scenario(**changes)
