"""Radio access over drawn fading: the cell's own integral, a plain loop over blocks, and what moves and fails."""

import math

import networkx as nx
import numpy as np
import pytest
import simpy

from fedsim import simulate
from fedsim.network import Cell, NoFading, Rayleigh, UrbanMacro
from fedsim.network.graph.fading import AccessFading, FadingLaw, WayFading
from fedsim.network.graph.graph import Graph
from fedsim.network.radio.channel import Channel
from fedsim.network.topology.coverage import Offer
from fedsim.selectors.contracts import Cohort
from fedsim.streams import Streams
from fedsim.testing import check_network
from tests.support.lies import HonestSelector
from tests.support.media import FREE, STAR, built, opened, played
from tests.support.short_runs import TIMING
from tests.support.step_by_step import filled

SLOW_FADING = {"kind": "rayleigh", "coherence_s": 0.05}
BOTH = ("dedicated", "shared")


def graph(cell, spectrum="dedicated", topology=STAR, **more):
    access = {"kind": "radio", "cell": cell, "delay_s": 0.0, "spectrum": spectrum}
    return Graph(topology=topology, access=access, **more)


def read_as(fading_in_shares, **cell):
    """Return a cell without access latency whose two directions read fading so."""
    ways = {name: {**cell.pop(name, {}), "fading_in_shares": fading_in_shares} for name in ("downlink", "uplink")}
    return Cell(access="none", **ways, **cell)


@pytest.mark.parametrize("spectrum", BOTH)
@pytest.mark.parametrize(
    "cell",
    [
        Cell(access="none"),
        Cell(access="none", rate="cqi", path_loss=UrbanMacro(indoor_share=0.5)),
        Cell(access="none", uplink={"bandwidth_hz": 5e6}, downlink={"bandwidth_hz": 5e6}, delay_spread_s=363e-9),
        Cell(access="none", fading={"kind": "rician", "coherence_s": 0.01}),
    ],
    ids=["default", "cqi", "delay-spread", "rician"],
)
def test_alone_a_transfer_takes_as_long_as_in_its_own_cell(cell, spectrum):
    places = np.random.default_rng(1).uniform(-400, 400, (3, 2))
    medium, env = opened(graph(cell, spectrum), places, 7)
    alone = built(cell, places, 7)
    for client in range(3):
        for start, channel in ((medium.uplink, alone.uplink), (medium.downlink, alone.downlink)):
            for seconds in (0.003, 1.0, 5.0):
                bits = seconds * float(channel.ergodic_rate_bps[client])
                if bits > 0:
                    env.run(until=env.now + 0.0123)
                    began_s = env.now
                    env.run(until=start(client, bits).done)
                    (theory,) = channel.transfer_s(np.array([client]), np.array([began_s]), bits)
                    assert env.now - began_s == pytest.approx(theory, rel=1e-9)


def ends_in_blocks(transfers, channel, mean_bps, station, wires, *, shared, most_blocks, last_block):
    """Return the ends of uplinks (start, client, bits), one block and one event after the other."""
    coherence_s, now = channel.fading.coherence_s, 0.0
    coming, left, ends, first = sorted(transfers), {}, {}, {}
    while coming or left:
        while coming and coming[0][0] <= now:
            _, client, bits = coming.pop(0)
            left[client], first[client] = bits, int(now / coherence_s + 1e-12)
        if not left:
            now = coming[0][0]
            continue
        block, ids = int(now / coherence_s + 1e-12), list(left)
        ways = [{("own", i): 1.0, **dict.fromkeys(wires[station[i]], 1.0)} for i in ids]
        capacity = {wire: bps for names in wires.values() for wire, bps in names.items()}
        drawn = zip(ids, channel.rate_bps(np.array(ids), block).tolist(), strict=True)
        rate_bps = {i: rate if block < min(first[i] + most_blocks, last_block) else mean_bps[i] for i, rate in drawn}
        if shared:
            means = {**capacity, **{("own", i): mean_bps[i] for i in ids}, **{("time", s): 1.0 for s in wires}}
            timed = [{**way, ("time", station[i]): 1 / mean_bps[i]} for i, way in zip(ids, ways, strict=True)]
            used = {i: r / mean_bps[i] for i, r in zip(ids, filled(timed, means), strict=True)}
            for i in ids:
                rate_bps[i] *= used[i] / sum(used[k] for k in ids if station[k] == station[i])
        rates = filled(ways, {**capacity, **{("own", i): rate_bps[i] for i in ids}})
        next_s = [(block + 1) * coherence_s, *[start for start, *_ in coming[:1]]]
        until = min(next_s + [now + left[i] / rate for i, rate in zip(ids, rates, strict=True) if rate > 0])
        for i, rate in zip(ids, rates, strict=True):
            left[i] -= rate * (until - now)
            if left[i] <= 1e-6:
                ends[i] = until
                del left[i]
        now = until
    return ends


@pytest.mark.parametrize(
    ("backhaul_bps", "most_blocks", "last_block"),
    [*((backhaul_bps, 10**6, 10**6) for backhaul_bps in (1e12, 4e6, 1e6)), (8e6, 12, 10**6), (8e6, 10**6, 40)],
)
@pytest.mark.parametrize("spectrum", BOTH)
def test_many_transfers_go_as_a_plain_loop_over_the_blocks_says(
    spectrum, backhaul_bps, most_blocks, last_block, monkeypatch
):
    """Links fade for some blocks after a transfer has begun to use them, and have their mean rates after that."""
    monkeypatch.setattr(AccessFading, "most_blocks", most_blocks)
    monkeypatch.setattr(AccessFading, "last_block", last_block)
    cell = Cell(access="none", uplink={"transmit_power_dbm": -7.0}, fading=SLOW_FADING, shadowing_sigma_db=0.0)
    rng = np.random.default_rng(4)
    places = rng.uniform(0, 300, (24, 2)) / (1.0, 5.0)
    bps = {"fronthaul": 5e6, "backhaul": backhaul_bps}
    ways = {name: {"capacity_bps": capacity, "delay_s": 0.0} for name, capacity in bps.items()}
    network = graph(cell, spectrum, {"kind": "two-tier", "cells": 2, "site_distance_m": 300.0, **ways})
    links = built(network, places, 7)
    station = links.access.first.station.tolist()
    assert set(station) == {0, 1}
    transfers = [(float(rng.uniform(0, 2)), i, float(rng.uniform(0.2e6, 4e6))) for i in range(24)]
    channel = Channel(links.access.first.snr[1], 1e6, cell.fading, "fading-uplink", Streams(7), cell.rate)
    wires = {s: {("front", s): 5e6, ("back", s): backhaul_bps} for s in (0, 1)}
    rules = {"shared": spectrum == "shared", "most_blocks": most_blocks, "last_block": last_block}
    theory = ends_in_blocks(transfers, channel, links.access.first.uplink_bps, station, wires, **rules)
    env = simpy.Environment()
    medium = links.open(env)
    lines = [(client, start_s, (client, bits), None) for start_s, client, bits in transfers]
    found, _ = played(env, medium.uplink, lines, 100.0)
    assert found == pytest.approx(theory, rel=1e-9)
    # Events are those of transfers, not of blocks.
    assert medium.fluid.recomputed < 5 * len(transfers)


def test_means_and_constant_gains_are_read_by_name():
    places = np.array([[700.0, 0.0], [500.0, 0.0]])

    def seconds(cell):
        medium, env = opened(graph(cell, "shared"), places, 1)
        took = []
        for _ in range(4):
            began_s = env.now
            env.run(until=medium.uplink(0, 3e5).done)
            took.append(env.now - began_s)
        return took

    assert np.ptp(seconds(read_as("drawn"))) > 0.01
    means = seconds(read_as("mean"))
    (expected,) = built(graph(read_as("mean"), "shared"), places, 1).expected_uplink_s(3e5)[:1]
    assert means == pytest.approx([expected] * 4)
    assert seconds(read_as("drawn", fading=NoFading())) == seconds(read_as("mean", fading=NoFading()))
    one_way = Cell(access="none", uplink={"fading_in_shares": "mean"})
    assert seconds(one_way) == means


def test_sent_bits_rise_with_the_blocks_and_stay_after_a_cancel():
    cell = Cell(access="none", fading=SLOW_FADING)
    medium, env = opened(graph(cell), [[300.0, 0.0]], 5)
    channel = built(cell, [[300.0, 0.0]], 5).uplink
    flow = medium.uplink(0, 1e9)
    for until_s in (0.02, 0.31, 0.5, 2.222):
        env.run(until=until_s)
        (theory,) = channel.carried_bits(np.array([0]), np.zeros(1), np.array([until_s]))
        assert flow.sent_bits() == pytest.approx(theory, rel=1e-9)
        assert flow.rate_bps() == pytest.approx(channel.rate_bps(0, int(until_s / 0.05 + 1e-9)))
    flow.cancel()
    env.run(until=3.0)
    assert flow.sent_bits() == pytest.approx(theory, rel=1e-9)
    assert not flow.done.triggered
    assert flow.rate_bps() == 0.0


def test_a_burst_leaves_a_share_of_each_blocks_rate():
    burst = {"kind": "outage-bursts", "mean_good_s": 1e-3, "mean_bad_s": 1e9, "bad_factor": 0.25}
    trouble = [{**burst, "edges": [["client-0", "bs-0"]]}]
    medium, env = opened(graph(Cell(access="none", fading=SLOW_FADING), trouble=trouble), [[300.0, 0.0]], 5)
    channel = built(Cell(access="none", fading=SLOW_FADING), [[300.0, 0.0]], 5).uplink
    flow = medium.uplink(0, 1e12)
    env.run(until=1.01)
    assert flow.rate_bps() == pytest.approx(channel.rate_bps(0, 20) / 4)


def test_a_transfer_between_two_clients_has_the_lesser_of_both_links():
    links = nx.Graph([("bs", "cloud", {"capacity_bps": 1e12, "delay_s": 0.0})])
    links.nodes["cloud"]["kind"] = "cloud"
    links.nodes["bs"].update(kind="base-station", x_m=0.0, y_m=0.0)
    cell = Cell(access="none", fading=SLOW_FADING, shadowing_sigma_db=0.0)
    places = np.array([[300.0, 0.0], [0.0, 280.0]])
    medium, env = opened(graph(cell, topology=links), places, 5)
    flow = medium.transfer("client-0", "client-1", 1e12)
    alone = built(cell, places, 5)
    for block in range(6):
        env.run(until=(block + 0.5) * 0.05)
        least = min(float(alone.uplink.rate_bps(0, block)), float(alone.downlink.rate_bps(1, block)))
        assert flow.rate_bps() == pytest.approx(least)


def test_a_client_that_walks_fades_at_the_snr_of_its_place():
    """Behind each step the rate is that of the block at the place of the last step."""
    walk = {"kind": "trace", "points": [[0, 0.0, 100.0, 0.0], [0, 40.0, 500.0, 0.0]]}
    cell = Cell(access="none", fading=SLOW_FADING, shadowing_sigma_db=0.0, delay_spread_s=0.0)
    network = graph(cell, mobility=walk, handover={"measured_every_s": 0.5})
    medium, env = opened(network, [[0.0, 0.0]], 5)
    flow = medium.uplink(0, 1e12)
    for until_s in (1.01, 12.26, 30.51):
        env.run(until=until_s)
        place = np.array([[100.0 + 10.0 * (until_s // 0.5 * 0.5), 0.0]])
        channel = built(cell, place, 5).uplink
        assert flow.rate_bps() == pytest.approx(float(channel.rate_bps(0, int(until_s / 0.05))), rel=1e-4)


def test_a_handover_keeps_the_draws_of_client_and_block():
    points = [[0, 0.0, 10.0, 0.0], [0, 10.0, 290.0, 0.0], [0, 11.0, 290.0, 0.0]]
    topology = {"kind": "two-tier", "cells": 2, "site_distance_m": 300.0, "fronthaul": FREE, "backhaul": FREE}
    cell = Cell(access="none", fading=SLOW_FADING, shadowing_sigma_db=0.0)
    network = graph(cell, "shared", topology, mobility={"kind": "trace", "points": points})
    medium, env = opened(network, [[0.0, 0.0]], 5)
    flow = medium.uplink(0, 1e12)
    env.run(until=12.01)
    assert [change.to_station for change in medium.handovers] == ["bs-1"]
    channel = built(cell, [[10.0, 0.0]], 5).uplink
    assert flow.rate_bps() == pytest.approx(float(channel.rate_bps(0, 240)), rel=1e-6)


def test_a_table_of_a_band_grows_with_the_snrs_that_clients_meet():
    law = FadingLaw(Cell().rate, Rayleigh(), 363e-9, Streams(2))
    fading = AccessFading(
        law, [(0, 1)], (None, WayFading(law, "fading-uplink", 5e6, np.array([1e6]), np.array([10.0])))
    )
    assert fading.fades(np.arange(3)).tolist() == [False, True, False]
    block, link = np.arange(50), np.array([1])
    for snr in (10.0, 1000.0, 0.02):
        assert fading.join(0, Offer((1.0, 2e6), (1.0, snr)))
        channel = Channel(
            np.array([snr]), 5e6, Rayleigh(), "fading-uplink", Streams(2), law.rate, delay_spread_s=363e-9
        )
        np.testing.assert_allclose(fading.ratios(link, block)[:, 0], channel.rate_bps(0, block) / 2e6, rtol=1e-6)
    assert not fading.join(0, Offer((5.0, 2e6), (7.0, 0.02)))
    assert not fading.join(0, Offer((5.0, 2e6)))


def test_the_base_station_measures_the_strongest_stations_uplink():
    cell = Cell(access="none")
    places = np.random.default_rng(3).uniform(-300, 300, (6, 2))
    links = built(graph(cell), places, 9)
    alone = built(cell, places, 9)
    who = np.array([4, 1])
    for time_s in (0.0, 50.0):
        np.testing.assert_allclose(links.uplink_snr_hz(who, time_s), alone.uplink_snr_hz(who, time_s))
    np.testing.assert_allclose(links.describe().snr, alone.describe().snr)
    constant = Graph(topology=STAR, access={"downlink_bps": 1e6, "uplink_bps": 1e6, "delay_s": 0.0})
    assert built(constant, places, 9).uplink_snr_hz(who, 0.0) is None


def test_a_report_is_that_of_the_place_at_its_instant():
    walk = {"kind": "trace", "points": [[0, 0.0, 100.0, 0.0], [0, 40.0, 500.0, 0.0], [1, 0.0, 200.0, 0.0]]}
    cell = Cell(access="none", shadowing_sigma_db=0.0)
    links = built(graph(cell, mobility=walk), np.zeros((2, 2)), 9)
    who = np.array([0, 1])

    def measured(x_m):
        return built(cell, [[x_m, 0.0], [200.0, 0.0]], 9).uplink_snr_hz(who, 0.0)

    # Later, earlier again, and at the start: an answer depends on no other.
    for time_s in (20.0, 30.0, 5.0, 0.0):
        np.testing.assert_allclose(links.uplink_snr_hz(who, time_s), measured(100.0 + 10.0 * time_s))
    assert links.uplink_snr_hz(np.zeros(0, dtype=np.int64), 3.0).shape == (0,)
    assert math.isfinite(links.uplink_snr_hz(who[:1], 1e6)[0])


@pytest.mark.parametrize("spectrum", BOTH)
def test_the_links_of_a_fading_graph_keep_the_laws_of_links(spectrum):
    check_network(graph(Cell(access="none"), spectrum), clients=5, bits=1e5)


def test_a_selector_reads_what_base_stations_measured_at_the_last_reports():
    """Client 0 walks away and reports each round; client 1 never takes part."""
    seen = []

    class Watching(HonestSelector):
        def select(self, view, rng):
            seen.append(view.snr_hz.copy())
            return Cohort(np.array([0]))

    walk = {"kind": "trace", "points": [[0, 0.0, 100.0, 0.0], [0, 40.0, 500.0, 0.0], [1, 0.0, 200.0, 0.0]]}
    network = graph(Cell(access="none", shadowing_sigma_db=0.0), "shared", mobility=walk)
    tables = {"crowd.clients": 2, "learning.model_bits": 1e6, "rounds.count": 4, "results.audit": True}
    history = simulate(TIMING.replace({**tables, "network": network, "selector": Watching()}))
    ends_s = history.column("rounds", "end_s")
    assert [reports[1] for reports in seen] == [seen[0][1]] * 4
    for reports, time_s in zip(seen, [0.0, *ends_s], strict=False):
        place = np.array([[100.0 + 10.0 * time_s, 0.0]])
        theory = built(Cell(access="none", shadowing_sigma_db=0.0), place).uplink_snr_hz(np.array([0]), 0.0)
        assert reports[0] == pytest.approx(float(theory[0]))
