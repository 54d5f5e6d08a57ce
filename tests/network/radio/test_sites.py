"""Hexagonal sites: geometry, who serves whom, and interference worked out by hand."""

import itertools
import math

import numpy as np
import pytest

from fedsim.network import (
    Cell,
    Hexagons,
    IndoorOffice,
    LogDistance,
    ModulationAndCoding,
    Nakagami,
    NoFading,
    Shannon,
    Sites,
)
from fedsim.network.radio.interference import interference_states
from fedsim.network.radio.sites import hexagonal_sites
from fedsim.streams import Streams
from tests.support.media import built

SLOPE = LogDistance(exponent=4.0, reference_loss_db=100.0, reference_distance_m=100.0)
NOISE_DOWN_MW = 1.380649e-23 * 290 * 1e6 * 1e3 * 10**0.9
NOISE_UP_MW = 1.380649e-23 * 290 * 1e6 * 1e3 * 10**0.5


def gain(distance_m):
    return 1e-10 * (np.asarray(distance_m) / 100.0) ** -4.0


def still(**options):
    return Cell(path_loss=SLOPE, shadowing_sigma_db=0.0, fading=NoFading(), **options)


@pytest.mark.parametrize(("rings", "count"), [(0, 1), (1, 7), (2, 19), (3, 37)])
def test_rings_of_sites(rings, count):
    sites = hexagonal_sites(200.0, rings)
    assert sites.shape == (count, 2)
    np.testing.assert_array_equal(sites[0], [0.0, 0.0])
    apart = np.hypot(*(sites[:, None] - sites).transpose(2, 0, 1))
    if count > 1:
        assert apart[~np.eye(count, dtype=bool)].min() == pytest.approx(200.0)
        np.testing.assert_allclose(apart[0, 1:7], 200.0)
        np.testing.assert_allclose(sites[:7], hexagonal_sites(200.0, 1))


@pytest.mark.statistical
def test_hexagons_are_uniform_over_the_cells():
    clients, rings = 21_000, 1
    place = Hexagons(inter_site_distance_m=300.0, rings=rings).positions(clients, Streams(2))
    sites = hexagonal_sites(300.0, rings)
    apart = np.hypot(*(place[:, None] - sites).transpose(2, 0, 1))
    # Everybody stands in the hexagon of a site: nearest to it, at most a corner's distance away.
    assert apart.min(axis=1).max() <= 300 / math.sqrt(3) * (1 + 1e-12)
    counts = np.bincount(apart.argmin(axis=1), minlength=7)
    assert np.all(np.abs(counts - 3000) < 5 * math.sqrt(clients * 6 / 49))
    # The mean squared distance in a hexagon of side a is 5 a^2 / 12; its deviation is below its mean.
    squared = apart.min(axis=1) ** 2
    assert squared.mean() == pytest.approx(5 * 300**2 / 3 / 12, rel=5 / math.sqrt(clients))
    inner = np.mean(squared < 100.0**2)
    share = math.pi * 100**2 / (300**2 * math.sqrt(3) / 2)
    assert abs(inner - share) < 5 * math.sqrt(share * (1 - share) / clients)
    np.testing.assert_array_equal(
        Hexagons(inter_site_distance_m=300.0, rings=rings).positions(50, Streams(2)), place[:50]
    )


def test_downlink_interference_by_hand():
    # A client at (100, 0); sites 400 m away in six directions send half of the time, in 64 equally likely ways.
    rate = Shannon(snr_gap_db=0.0, ceiling="none")
    links = built(still(rate=rate, sites=Sites(inter_site_distance_m=400.0, load=0.5)), [[100.0, 0.0]])
    angle = np.arange(6) * math.pi / 3
    apart = np.hypot(400 * np.cos(angle) - 100, 400 * np.sin(angle))
    sent = 10**3.6
    ways = np.array(list(itertools.product((0.0, 1.0), repeat=6)))
    sinr = sent * gain(100.0) / (NOISE_DOWN_MW + ways @ (sent * gain(apart)))
    mean = np.log2(1 + sinr).mean()
    assert math.log2(1 + links.downlink.snr[0]) == pytest.approx(mean, rel=0.005)
    average = sent * gain(100.0) / (NOISE_DOWN_MW + 0.5 * sent * gain(apart).sum())
    assert math.log2(1 + average) < 0.96 * mean
    assert links.serving.tolist() == [0]


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [Shannon(), ModulationAndCoding()], ids=["shannon", "cqi"])
@pytest.mark.parametrize("place_m", [40.0, 120.0, 190.0])
def test_the_ergodic_rate_is_that_of_sampled_interference(rate, place_m):
    """Six sites that come and go and fade, and a fading link of its own, block by block."""
    cell = Cell(path_loss=SLOPE, shadowing_sigma_db=0.0, rate=rate, sites=Sites(inter_site_distance_m=400.0, load=0.3))
    links = built(cell, [[place_m, 0.0]])
    rng, blocks = np.random.default_rng(3), 100_000
    angle = np.arange(6) * math.pi / 3
    apart = np.hypot(400 * np.cos(angle) - place_m, 400 * np.sin(angle))
    power = 10**3.6 * gain(apart) * (rng.random((blocks, 6)) < 0.3) * rng.exponential(size=(blocks, 6))
    sinr = 10**3.6 * gain(place_m) * rng.exponential(size=blocks) / (NOISE_DOWN_MW + power.sum(axis=1))
    sampled = rate.efficiency(sinr)
    error = 5 * sampled.std() / math.sqrt(blocks) + 0.015 * sampled.mean()
    assert links.downlink.ergodic_rate_bps[0] / 1e6 == pytest.approx(sampled.mean(), abs=error)


@pytest.mark.statistical
def test_uplink_interference_against_a_sample_of_places():
    """One client in each of six hexagons for 0.3 of the time; without shadowing nobody is nearer to another site."""
    rate = Shannon(snr_gap_db=0.0, ceiling="none")
    cell = still(rate=rate, sites=Sites(inter_site_distance_m=400.0, load=0.3))
    links = built(cell, [[100.0, 0.0]])
    rng, samples = np.random.default_rng(0), 60_000
    received = np.zeros(samples)
    for angle in np.arange(6) * math.pi / 3:
        box = rng.uniform(-231, 231, size=(2 * samples, 2))
        inside = np.all(np.abs(box @ [[1, 0.5, 0.5], [0, math.sqrt(0.75), -math.sqrt(0.75)]]) <= 200.0, axis=1)
        place = box[inside][:samples] + 400 * np.array([math.cos(angle), math.sin(angle)])
        received += 10**2.3 * gain(np.hypot(*place.T)) * (rng.random(samples) < 0.3)
    sampled = np.log2(1 + 10**2.3 * gain(100.0) / (NOISE_UP_MW + received))
    error = 5 * sampled.std() / math.sqrt(samples) + 0.01 * sampled.mean()
    assert math.log2(1 + links.uplink.snr[0]) == pytest.approx(sampled.mean(), abs=error)


@pytest.mark.parametrize("load", [0.05, 0.5, 1.0])
def test_states_have_the_load_and_the_fading_law_in_every_column(load):
    states = interference_states(6, load, Nakagami(m=2.0))
    np.testing.assert_allclose(states.mean(axis=0), load)
    assert np.all(np.abs((states > 0).mean(axis=0) - load) <= 0.5 / len(states))
    # Gains of mean 1 and variance 1/2: the second moment of a source that is silent now and then is load * 3/2.
    np.testing.assert_allclose((states**2).mean(axis=0), 1.5 * load, rtol=0.1 if load < 0.1 else 0.02)
    np.testing.assert_array_equal(interference_states(2, load, Nakagami(m=2.0)), states[:, :2])
    # Orders are unrelated: correlations of 256 pairs are below four deviations.
    assert np.abs(np.corrcoef(states.T)[np.triu_indices(6, 1)]).max() < 4 / 16


def test_without_load_or_neighbours_there_is_no_interference():
    place = np.array([[120.0, 50.0], [10.0, 0.0]])
    alone = built(still(), place)
    for sites in (Sites(load=0.0), Sites(rings=0)):
        among = built(still(sites=sites), place)
        np.testing.assert_array_equal(among.uplink.snr, alone.uplink.snr)
        np.testing.assert_array_equal(among.downlink.snr, alone.downlink.snr)
    busy = built(still(sites=Sites(load=1.0)), place)
    assert np.all(busy.downlink.snr < alone.downlink.snr)


def test_clients_are_served_by_the_nearest_site_where_nothing_stands_between():
    sites = Sites(inter_site_distance_m=300.0, serving_rings=1)
    place = Hexagons(inter_site_distance_m=300.0, rings=1).positions(500, Streams(1))
    links = built(still(sites=sites), place)
    apart = np.hypot(*(place[:, None] - hexagonal_sites(300.0, 1)).transpose(2, 0, 1))
    np.testing.assert_array_equal(links.serving, apart.argmin(axis=1))
    np.testing.assert_allclose(links.delay_s, apart.min(axis=1) / 299_792_458)


def test_shadowing_moves_some_clients_to_another_site_and_a_further_client_nobody():
    cell = Cell(sites=Sites(inter_site_distance_m=300.0, serving_rings=1), path_loss=SLOPE, shadowing="correlated")
    place = Hexagons(inter_site_distance_m=300.0, rings=1).positions(400, Streams(1))
    many, few = built(cell, place, 3), built(cell, place[:60], 3)
    nearest = np.hypot(*(place[:, None] - hexagonal_sites(300.0, 1)).transpose(2, 0, 1)).argmin(axis=1)
    assert 10 < np.count_nonzero(many.serving != nearest) < 250
    np.testing.assert_array_equal(many.serving[:60], few.serving)
    np.testing.assert_array_equal(many.downlink.snr[:60], few.downlink.snr)


def test_sites_that_hardly_ever_send_count_with_their_mean():
    np.testing.assert_array_equal(interference_states(3, 1e-4, NoFading()), np.full((256, 3), 1e-4))


@pytest.mark.parametrize(("here_db", "own_db", "counts_db"), [(90.0, 100.0, 100.0), (120.0, 100.0, 120.0)])
def test_nobody_disturbs_more_than_through_the_loss_towards_its_own_site(here_db, own_db, counts_db):
    def towards(distance_m, site):
        return np.full_like(distance_m, here_db if site == 0 else own_db), np.zeros_like(distance_m)

    received = Sites(load=1.0, uplink_backoff_db=3.0).uplink_states_mw(23.0, towards, NoFading())
    np.testing.assert_allclose(received, 6 * 10 ** ((20.0 - counts_db) / 10))


def test_interferers_without_a_line_of_sight_count_less():
    # At 60 m an office has a line of sight in 6 % of all places: the mean lies between having one and having none.
    sites = Sites(inter_site_distance_m=60.0, load=1.0)

    def still_towards(law):
        return lambda distance_m, _site: (law.loss_db(distance_m), np.zeros_like(distance_m))

    seen, unseen = (
        LogDistance(exponent=slope, reference_loss_db=loss + 20 * math.log10(3.5), reference_distance_m=1.0)
        for slope, loss in ((1.73, 32.4), (3.83, 17.3))
    )
    office = Cell(path_loss=IndoorOffice(), shadowing_sigma_db=0.0, fading=NoFading(), sites=sites)
    place = np.array([[5.0, 0.0]])
    found = built(office, place).uplink
    own = 10 ** ((23 - office.losses(place, np.zeros((1, 2)), Streams(0))[1][0, 0]) / 10) / NOISE_UP_MW
    best, worst = (
        own / (1 + sites.uplink_states_mw(23.0, still_towards(law), NoFading()) / NOISE_UP_MW) for law in (unseen, seen)
    )
    efficiency = Shannon().efficiency
    assert efficiency(worst).mean() < efficiency(found.snr)[0] < efficiency(best).mean()
