"""Access links of a graph that follow the radio, against the cell's own rates and by hand."""

import math

import numpy as np
import pytest
import simpy
from pydantic import ValidationError

from fedsim.errors import ScenarioError
from fedsim.network import NETWORKS, Cell, NoFading, UrbanMacro
from fedsim.network.graph.graph import Graph
from fedsim.streams import Streams
from tests.support.media import ACCESS, FREE, LOST, STAR, TWO_CELLS, WALK, built, finish, opened

PLAIN = {"fading": "none", "shadowing_sigma_db": 0.0, "rate": {"kind": "shannon", "snr_gap_db": 0.0, "ceiling": "none"}}


def radio(cell=None, **more):
    return {"kind": "radio", "cell": {**PLAIN, **(cell or {})}, "delay_s": 0.01, **more}


@pytest.mark.parametrize(
    "cell",
    [
        Cell(),
        Cell(path_loss=UrbanMacro(indoor_share=0.5), rate="cqi", shadowing="correlated"),
        Cell(fading=NoFading(), shadowing={"kind": "correlated", "method": "exact"}),
    ],
    ids=["default", "uma", "exact"],
)
def test_a_client_alone_has_the_mean_rate_of_its_cell(cell):
    places = np.random.default_rng(1).uniform(-400, 400, (50, 2))
    links = built(Graph(topology=STAR, access={"kind": "radio", "cell": cell, "delay_s": 0.01}), places, 7)
    alone = built(cell, places, 7)
    for found, theory in (
        (links.expected_downlink_s(1e6), 1e6 / alone.downlink.ergodic_rate_bps),
        (links.expected_uplink_s(1e6), 1e6 / alone.uplink.ergodic_rate_bps),
    ):
        reached = np.isfinite(theory) & (theory < 1e4)
        assert reached.sum() > 30
        np.testing.assert_allclose(found[reached] - 0.01, theory[reached], rtol=5e-3)
        assert np.all(found[np.isinf(theory)] == np.inf)


def test_clients_are_attached_to_the_station_with_the_least_loss():
    cell = {"shadowing_sigma_db": 8.0, "shadowing": {"kind": "correlated"}}
    places = np.random.default_rng(2).uniform(-20, 120, (200, 2))
    links = built(Graph(topology=TWO_CELLS, access=radio(cell)), places, 3)
    loss = Cell(**{**PLAIN, **cell}).losses(places, np.array([[0.0, 0.0], [100.0, 0.0]]), Streams(3))[1]
    np.testing.assert_array_equal(links.access.first.station, loss.argmin(axis=1))
    nearest = np.hypot(*(places[:, None] - [[0.0, 0.0], [100.0, 0.0]]).transpose(2, 0, 1)).argmin(axis=1)
    assert np.count_nonzero(links.access.first.station != nearest) > 10


def test_other_stations_disturb_as_the_sites_of_a_cell_do():
    sites = {"inter_site_distance_m": 300.0, "load": 0.5, "serving_rings": 1}
    hexagon = {"kind": "two-tier", "cells": 7, "site_distance_m": 300.0, "fronthaul": FREE, "backhaul": FREE}
    places = np.random.default_rng(3).uniform(-200, 200, (80, 2))
    links = built(Graph(topology=hexagon, access=radio({"sites": sites})), places)
    cell = built(Cell(**PLAIN, sites=sites), places)
    # The graph numbers the stations of a ring otherwise, and with them the states of who sends when.
    np.testing.assert_allclose(links.access.first.downlink_bps, cell.downlink.ergodic_rate_bps, rtol=0.05)
    np.testing.assert_allclose(links.access.first.uplink_bps, cell.uplink.ergodic_rate_bps, rtol=1e-3)
    quiet = built(Graph(topology=hexagon, access=radio()), places)
    assert np.all(quiet.access.first.downlink_bps > links.access.first.downlink_bps)


def test_shared_spectrum_is_shared_by_time_at_each_clients_own_rate():
    network = Graph(topology=STAR, access=radio(spectrum="shared"))
    links = built(network, [[300.0, 0.0], [800.0, 0.0]])
    near, far = links.access.first.uplink_bps
    assert near > 2 * far
    env = simpy.Environment()
    air = links.open(env)
    # Together r (1 / near + 1 / far) = 1 second per second each; who is alone has it all. Downlinks do not matter.
    both = 1 / (1 / near + 1 / far)
    bits = np.array([2.0, 3.0]) * both
    flows = [air.uplink(0, bits[0]), air.uplink(1, bits[1])]
    downlink = air.downlink(0, links.access.first.downlink_bps[0])
    assert finish(env, *flows, downlink) == pytest.approx([2.01, 2.01 + both / far, 1.01])
    alone = built(Graph(topology=STAR, access=radio()), [[300.0, 0.0], [800.0, 0.0]])
    env = simpy.Environment()
    air = alone.open(env)
    assert finish(env, air.uplink(0, near), air.uplink(1, far)) == pytest.approx([1.01, 1.01])
    np.testing.assert_allclose(alone.expected_uplink_s(1e6), links.expected_uplink_s(1e6))


def test_a_burst_takes_more_airtime_for_the_same_bits():
    burst = {"kind": "outage-bursts", "mean_good_s": 1e-3, "mean_bad_s": 1e9, "bad_factor": 0.25}
    trouble = [{**burst, "edges": [["client-0", "bs-0"]]}]
    links = built(Graph(topology=STAR, access=radio(spectrum="shared"), trouble=trouble), [[300.0, 0.0], [300.0, 0.0]])
    env = simpy.Environment()
    air = links.open(env)
    rate = links.access.first.uplink_bps[0]
    flow, other = air.uplink(0, 1e12), air.uplink(1, 1e12)
    assert flow.rate_bps() == other.rate_bps() == pytest.approx(rate / 2)
    env.run(until=1.0)
    # r / (rate / 4) + r / rate = 1: a fifth of the rate for each.
    assert flow.rate_bps() == other.rate_bps() == pytest.approx(rate / 5)
    assert np.all(air.fluid.load_bps() <= air.topology.resources_bps() * (1 + 1e-9))


@pytest.mark.parametrize("step_m", [0.5, 10.0])
def test_rates_follow_a_client_that_walks_away(step_m):
    """Bits sent lie between the sums of the rate at the end and at the beginning of each step."""
    mobility = {"kind": "trace", "points": [[0, 0.0, 100.0, 0.0], [0, 40.0, 500.0, 0.0]]}
    network = Graph(topology=STAR, access=radio(step_m=step_m), mobility=mobility, handover={"measured_every_s": 0.01})
    air, env = opened(network, [[0.0, 0.0]])
    flow = air.uplink(0, 1e12)
    env.run(until=35.0)
    distance = np.arange(100.0, 450.1, 0.5)
    rate = built(Cell(**PLAIN), np.column_stack([distance, np.zeros_like(distance)])).uplink.ergodic_rate_bps
    fine = ((rate[1:] + rate[:-1]) / 2 * 0.05).sum()
    # The rate lags by up to a step and a measurement: half of the step on average, and falls all the way.
    slack = (rate[0] - rate[-1]) * (step_m + 0.2) / 10.0
    assert fine - 0.5 * rate[0] / 10 - 1e-3 * fine < flow.sent_bits() < fine + slack


def test_a_client_is_where_it_walks_to_whichever_way_it_came():
    """What the radio offers at a place depends on client and place, not on whether or how it got there."""
    law = UrbanMacro(indoor_share=0.5, high_loss_share=0.3, client_height_m=20.0)
    cell = Cell(path_loss=law, shadowing="correlated")
    places = np.random.default_rng(5).uniform(-300, 300, (30, 2))
    sites = np.array([[0.0, 0.0], [200.0, 0.0]])
    for site in (0, 1):
        distance = np.hypot(*(places - sites[site]).T)
        everybody = law.draw(distance, site, Streams(4))
        named = law.draw(distance[[7, 7, 3]], site, Streams(4), np.array([7, 7, 3]))
        np.testing.assert_array_equal(named.loss_db, everybody.loss_db[[7, 7, 3]])
        np.testing.assert_array_equal(named.sigma_db, everybody.sigma_db[[7, 7, 3]])
    walks = {"kind": "trace", "points": [[i, 0.0, *place] for i, place in enumerate(places.tolist())]}
    still, moved = (
        built(
            Graph(topology=TWO_CELLS, access={"kind": "radio", "cell": cell, "delay_s": 0.0}, mobility=mobility),
            where,
            4,
        )
        for mobility, where in ((None, places), (walks, np.zeros((30, 2))))
    )
    np.testing.assert_array_equal(still.access.first.station, moved.access.first.station)
    np.testing.assert_allclose(still.access.first.uplink_bps, moved.access.first.uplink_bps)


def test_a_client_leaves_a_lost_cell_only_for_one_that_it_can_hear():
    # 1 MHz and 23 dBm uplink, 36 dBm downlink: noise -104.98 dBm in the downlink. SNR at 900 m: 36 - 126.38 + 104.98.
    network = {
        "topology": {**TWO_CELLS, "site_distance_m": 1000.0},
        "handover": {"reselect_after_s": 0.5},
        "trouble": [LOST],
    }
    snr_db = 36.0 - (128.1 + 37.6 * math.log10(0.9)) - (-173.9753 + 60.0 + 9.0)
    for least, end in ((snr_db - 0.1, [(1.5, "bs-1")]), (snr_db + 0.1, [])):
        air, env = opened(Graph(access=radio(least_snr_db=least), **network), [[100.0, 0.0]])
        air.uplink(0, 1e12)
        env.run(until=8.0)
        assert [(change.time_s, change.to_station) for change in air.handovers] == end


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"access": radio({"uplink": {"sharing": "equal"}})},
            "cell.uplink.sharing = 'equal' is not allowed in a graph",
        ),
        ({"access": {"kind": "wired"}}, "there is no access 'wired'"),
        ({"access": radio({"kind": "nb-iod"})}, "there is no cell 'nb-iod'"),
        ({"access": {**ACCESS, "exponent": 0.0}}, "greater than 0"),
        ({"access": ACCESS, "handover": {"hysteresis_db": 16.0}}, "less than or equal to 15"),
        ({"access": ACCESS, "handover": {"measured_every_s": 0.0}}, "greater than 0"),
    ],
)
def test_wrong_access_is_refused(table, message):
    with pytest.raises(ValidationError, match=message):
        NETWORKS.make({"kind": "graph", "topology": STAR, **table})


def test_shadowing_that_is_no_function_of_the_place_is_refused_where_clients_move():
    cell = {"shadowing_sigma_db": 8.0, "shadowing": {"kind": "correlated", "method": "exact"}}
    with pytest.raises(ScenarioError, match="'exact' is not allowed where clients move"):
        opened(Graph(topology=STAR, access=radio(cell), mobility=WALK), [[0.0, 0.0]])


def test_a_client_out_of_reach_for_ever_is_told_from_one_that_may_walk_back():
    far = {"points": [[0, 0.0, 1e6, 0.0], [0, 1e3, 0.0, 0.0]], "kind": "trace"}
    cell = {"rate": "cqi"}
    still, moving = (
        built(Graph(topology=STAR, access=radio(cell), mobility=mobility), [[1e6, 0.0]]) for mobility in (None, far)
    )
    assert still.expected_uplink_s(1.0).tolist() == [math.inf]
    assert moving.expected_uplink_s(1.0).tolist() == [np.finfo(float).max]
    env = simpy.Environment()
    flow = moving.open(env).uplink(0, 1e6)
    env.run(until=900.0)
    assert flow.sent_bits() == 0.0
    env.run(until=2e3)
    assert flow.done.triggered
