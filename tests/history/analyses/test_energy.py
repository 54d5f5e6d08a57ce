"""Joules over time, to a target and of each client, by hand."""

import pytest

from fedsim import Testbed, simulate
from fedsim.errors import RunError
from tests.support.short_runs import timed

WAIT = {"kind": "constant", "value_s": 1.0}


BATTERY = {"kind": "battery", "capacity_j": 100.0, "compute_w": 1.0, "transmit_w": 1.0, "receive_j_per_bit": 0.0}


def scenario(energy):
    """Return two rounds of two clients: 1 s down, 1 s of work of client 0 and 3 s of client 1, 1 s up."""
    return timed(
        clients=2,
        bits=1.0,
        samples=1,
        network={"kind": "latency", "downlink": WAIT, "uplink": WAIT},
        devices={"compute": {"kind": "rate", "samples_per_s": [1.0, 1 / 3], "jitter_sigma": 0.0}, "energy": energy},
        rounds={"count": 2, "policy": {"kind": "deadline", "deadline_s": 4.5}},
    )


def test_joules_by_hand():
    """Client 0 pays 1 + 1 W s a round; client 1, cut 0.5 s into its upload, 3 + 0.5 W s, for nothing."""
    history = simulate(scenario(BATTERY))
    table = history.energy().to_pydict()
    assert table["client"] == [1, 0]
    assert table["energy_j"] == pytest.approx([7.0, 4.0])
    assert table["used_j"] == pytest.approx([0.0, 4.0])
    assert table["share"] == pytest.approx([7 / 11, 4 / 11])
    times_s, joules = history.curve("time", "energy")
    assert times_s.tolist() == [4.5, 9.0]
    assert joules.tolist() == pytest.approx([5.5, 11.0])
    axes = history.plot("time", "energy").axes[0]
    assert axes.get_ylabel() == "energy of all clients so far (J)"
    assert axes.lines[0].get_ydata().tolist() == pytest.approx([0.0, 5.5, 11.0])


def test_a_run_without_batteries_has_no_energy():
    with pytest.raises(RunError, match=r"no battery has paid anything; allowed: a run with devices\.energy"):
        simulate(scenario({"kind": "none"})).energy()


def test_joules_up_to_a_target():
    testbed = Testbed(scenario(BATTERY))
    for accuracy in (0.3, 0.9):
        testbed.round([0, 1])
        testbed.report(accuracy=accuracy)
    history = testbed.finish()
    assert history.energy_to(above=0.2) == pytest.approx(5.5)
    assert history.energy_to(above="80 %") == pytest.approx(11.0)
    assert history.energy_to(above=0.95) is None
