"""Networks of traces: whole runs against times by hand, offsets, and a capacity that clients share."""

import numpy as np
import pytest
import simpy

from fedsim import simulate
from fedsim.inputs.tables import reading
from fedsim.network import NETWORKS
from fedsim.testing import check_network
from tests.support.media import built, played
from tests.support.short_runs import TIMING
from tests.support.step_by_step import flows_by_events

HERE = {"time": "t", "rate": "r", "unit": "kbit/s"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "down.csv").write_text("t,r,who\n0,10,a\n2,0,a\n3,30,a\n0,5,b\n1,5,b\n")
    (tmp_path / "up.csv").write_text("t,r,who\n0,1,a\n1,1,a\n0,2,b\n1,4,b\n")
    return tmp_path


def network(**options):
    down, up = ({**HERE, "path": f"{name}.csv", "trace": "who"} for name in ("down", "up"))
    return {"kind": "rate-traces", "downlink": down, "uplink": up, "delay_s": 0.0, **options}


def links(clients=4, seed=1, **options):
    return built(NETWORKS.make(network(**options)), np.zeros((clients, 2)), seed)


def scenario(**options):
    tables = {"crowd.clients": 2, "learning.model_bits": 20e3, "rounds.count": 2, "results.audit": True}
    traces = network(mapping="sequential", offset="none", **options)
    return TIMING.replace({**tables, "network": traces, "selector": "all"})


def test_rounds_by_hand(folder):
    """Client 0 has 10, 0 and 30 kbit/s and sends at 1; client 1 has 5 kbit/s and sends at 2 and 4 in turn."""
    rows = simulate(scenario(delay_s=[0.0, 0.5])).participations.to_pydict()
    assert rows["downlink_s"][:2] == pytest.approx([2.0, 4.5])
    # From 4.5 s on half a second at 2, then 1 s at 4 and 1 s at 2 kbit/s in turn: 20 kbit are 1, three of 4 + 2, 1.
    assert rows["uplink_s"][:2] == pytest.approx([20.0, 0.5 + 6.25 + 0.5])
    assert rows["start_s"][2:] == pytest.approx([22.0, 22.0])
    # At 22 s the trace of 4 s is at 2 s: an outage of 1 s, then 20 of its 30 kbit.
    assert rows["downlink_s"][2] == pytest.approx(1 + 20 / 30)


def test_offsets_and_traces_are_drawn_by_client_and_common_to_both_directions(folder):
    few, many = links(5), links(50)
    some, start_s = np.arange(5), np.zeros(5)
    np.testing.assert_array_equal(few.downlink_s(some, 1, start_s, 1e4), many.downlink_s(some, 1, start_s, 1e4))
    rates = many.describe().rate_bps
    # Trace a: 50 kbit in 4 s and 1 kbit/s; trace b: 5 kbit/s and 3 kbit/s.
    assert {tuple(pair) for pair in rates.T} == {(12500.0, 1000.0), (5000.0, 3000.0)}
    times = many.downlink_s(np.arange(50), 1, np.zeros(50), 1e4)
    assert len(set(times[rates[0] == 12500.0])) > 10, "clients of one trace are at different instants of it"
    still = links(50, offset="none").downlink_s(np.arange(50), 1, np.zeros(50), 1e4)
    assert set(np.round(still, 9)) == {1.0, 2.0}


def test_a_transfer_behind_one_that_never_ends_has_the_mean_rate(folder):
    found = links(2, mapping="sequential").uplink_s(np.array([1]), 1, np.array([np.inf]), 3e3)
    assert found == pytest.approx([1.0])


def test_bits_of_a_transfer_cut_short_are_those_of_its_trace(folder):
    """Trace a: 10 kbit/s until 2 s, an outage until 3 s, 30 kbit/s until 4 s, and anew; 1 kbit/s up throughout."""
    both = links(2, mapping="sequential", offset="none", delay_s=0.25)

    def carried(start_s, elapsed_s, bits, up=False):
        elapsed_s = np.array(elapsed_s)
        ids, starts_s = np.zeros(elapsed_s.size, dtype=np.int64), np.full(elapsed_s.size, start_s)
        return both.carried_bits(ids, 1, starts_s, elapsed_s, bits, up=up).tolist()

    assert carried(1.0, [0.0, 0.5, 1.0, 1.9, 2.5, 3.5], 1e5) == pytest.approx([0, 5e3, 10e3, 10e3, 25e3, 45e3])
    assert carried(3.5, [0.5, 1.0, 3.5, 4.5, 8.5], 1e6) == pytest.approx([15e3, 20e3, 35e3, 65e3, 115e3])
    assert carried(1.0, [0.5, 2.5], 12e3) == pytest.approx([5e3, 12e3]), "never more than the message"
    assert carried(1.0, [0.5, 2.5], 12e3, up=True) == pytest.approx([500.0, 2500.0])


@pytest.mark.parametrize("sharing", ["dedicated", "equal"])
def test_the_contract_of_a_network(folder, sharing):
    check_network(network(sharing=sharing, delay_s=0.25), bits=1e6)


def test_traces_that_are_not_used_or_not_of_one_measurement_are_noted(folder):
    with reading() as run:
        links(sharing="equal")
    assert [note.partition(".csv: ")[2] for note in run.notes if "not used" in note] == [
        "1 of 2 traces not used: sharing = 'equal' takes the first one"
    ] * 2
    (folder / "up.csv").write_text("t,r,who\n" + "".join(f"{at},1,{who}\n" for who in "abc" for at in (0, 1)))
    with reading() as run:
        links()
    said = "network: 2 traces of the downlink, 3 of the uplink: a client's two are of two measurements"
    assert said in run.notes


@pytest.mark.parametrize("seed", range(25))
def test_the_first_trace_is_a_capacity_that_transfers_share_equally(folder, seed):
    """Pieces of half seconds, of which some carry nothing; some transfers are given up, others have no bits."""
    rng = np.random.default_rng(seed)
    kbps = [*rng.choice([0, 1, 4], rng.integers(0, 4)).tolist(), 1]
    (folder / "up.csv").write_text("t,r,who\n" + "".join(f"{i / 2},{rate},a\n" for i, rate in enumerate([*kbps, 4])))
    clients = int(rng.integers(1, 5))
    lines = [
        (i, rng.uniform(0, 4), (i, rng.uniform(0, 4e3) * rng.integers(0, 4)), rng.choice([None, 4 + rng.uniform(0, 9)]))
        for i in range(clients)
    ]
    env = simpy.Environment()
    found_s, flows = played(env, links(clients, sharing="equal").open(env).uplink, lines)
    events = [(start_s, "begin", i, bits, ({"up": 1.0}, 0.0)) for i, start_s, (_, bits), _ in lines]
    events += [(at_s, "cancel", i) for i, *_, at_s in lines if at_s is not None]
    events += [(i / 2, "capacity", "up", 1e3 * rate) for i, rate in enumerate([*kbps, 4] * 60)]
    expected_s, seen = flows_by_events({"up": 0.0}, events)
    assert found_s == pytest.approx(expected_s)
    sent_bits = {i: bits - seen[-1][i] for i, _, (_, bits), _ in lines}
    assert {i: flow.sent_bits() for i, flow in flows.items()} == pytest.approx(sent_bits)
