"""Presets: they run, they are in the range of what such networks carry, and every option can be changed."""

import numpy as np
import pytest

from fedsim import Scenario
from fedsim.network import NETWORKS, Disc, Rayleigh, Rician, UrbanMacro
from fedsim.streams import Streams
from tests.support.media import built
from tests.support.short_runs import TIMING

# Radius of the cell in metres and, for its median client, the range of plausible uplink rates in bit/s.
PRESETS = {
    "urban-macro": (289.0, 3e5, 5e6),
    "indoor-office": (25.0, 4e6, 1.3e7),
    "wifi": (20.0, 4e6, 1e7),
    "nb-iot": (1000.0, 2e4, 1.3e5),
    "5g-midband": (115.0, 5e6, 7e7),
}


@pytest.mark.parametrize("kind", PRESETS)
def test_median_rates_are_plausible(kind):
    radius, least, most = PRESETS[kind]
    place = Disc(radius_m=radius, min_distance_m=1.0).positions(600, Streams(0))
    links = built(NETWORKS.make({"kind": kind, "transport": {"kind": "none"}}), place)
    assert least < np.median(links.uplink.ergodic_rate_bps) < most
    assert np.median(links.downlink.ergodic_rate_bps) > least
    took = links.uplink_s(np.arange(20), 1, np.zeros(20), 1e5)
    assert np.all(took > 0)


def test_peak_rates_are_those_of_the_standards():
    strong = np.array([1e9])
    wifi = NETWORKS.make("wifi").rate.efficiency(strong)[0]
    # MCS 8 on one stream in 20 MHz: 78 Mbit/s while a frame lasts, for 2000 of 2185.5 us.
    assert 20e6 * wifi == pytest.approx(78e6 * 2000 / 2185.5, rel=1e-3)
    # CQI 15 with 14 % overhead: 5.5547 and 7.4063 bit/s/Hz.
    assert NETWORKS.make("urban-macro").rate.efficiency(strong)[0] == pytest.approx(0.86 * 5.5547, rel=1e-5)
    assert NETWORKS.make("5g-midband").rate.efficiency(strong)[0] == pytest.approx(0.86 * 7.4063, rel=1e-5)
    assert 180e3 * NETWORKS.make("nb-iot").rate.efficiency(strong)[0] == pytest.approx(127e3, rel=0.01)
    # 802.11ax scenarios: 40.05 + 20 lg(f / 2.4 GHz) + 20 lg(min(d, 5)) + 35 lg(d / 5) beyond 5 m.
    loss = NETWORKS.make("wifi").path_loss.loss_db([5.0, 50.0])
    assert loss == pytest.approx(
        [40.05 + 20 * np.log10(5.25 / 2.4 * 5), 40.05 + 20 * np.log10(5.25 / 2.4 * 5) + 35], abs=0.1
    )


@pytest.mark.parametrize(
    ("kind", "down_dbm", "up_dbm"),
    [
        ("urban-macro", 36 + 15, 23 + 15),
        ("indoor-office", 14 + 5, 23 + 5),
        ("wifi", 10, 15),
        ("nb-iot", 35 + 15, 23 + 15),
        ("5g-midband", 41 + 24, 23 + 24),
        ("cell", 36, 23),
    ],
)
def test_powers_and_gains_are_those_of_the_documents(kind, down_dbm, up_dbm):
    network = NETWORKS.make(kind)
    effective = [link.transmit_power_dbm + link.gains_dbi for link in (network.downlink, network.uplink)]
    assert effective == [down_dbm, up_dbm]
    assert network.downlink.receive_gain_dbi == network.uplink.transmit_gain_dbi == 0.0, "a client's antenna"


def test_a_table_with_a_kind_stands_alone_and_one_without_changes_the_preset():
    network = NETWORKS.make({"kind": "indoor-office", "fading": {"kind": "rician"}, "path_loss": {"kind": "uma"}})
    assert network.fading == Rician()
    assert network.path_loss == UrbanMacro()
    assert NETWORKS.make({"kind": "indoor-office", "fading": "rayleigh"}).fading == Rayleigh()
    network = NETWORKS.make({"kind": "5g-midband", "fading": {"speed_m_per_s": 10.0, "carrier_hz": 3.5e9}})
    assert network.fading.coherence_s == pytest.approx(0.423 * 299_792_458 / 35e9)


def test_a_scenario_takes_a_preset_and_overrides():
    scenario = TIMING.replace({"learning.model_bits": 1e5, "network": "urban-macro"})
    changed = scenario.replace({"network.uplink.transmit_power_dbm": 20.0, "network.path_loss.carrier_hz": 1e9})
    assert (changed.network.uplink.transmit_power_dbm, changed.network.uplink.bandwidth_hz) == (20.0, 3.6e5)
    assert changed.network.path_loss.indoor_share == 0.8
    assert Scenario.from_toml(changed.to_toml()) == changed
    tables = {"kind": "urban-macro", "sites": {"load": 0.0}, "rate": {"attempts": 1}}
    alone = scenario.replace({"network": tables}).network
    assert (alone.sites.load, alone.sites.inter_site_distance_m) == (0.0, 500.0)
    assert (alone.rate.attempts, alone.rate.table) == (1, "64qam")


def test_delay_spreads_are_of_the_size_that_table_756_gives():
    """TR 38.901, medians of table 7.5-6, frequencies below 6 GHz as 6 GHz in UMa; offices lie between LOS and NLOS."""
    spread_s = {
        kind: NETWORKS.make(kind).delay_spread_s for kind in ("urban-macro", "5g-midband", "indoor-office", "wifi")
    }
    without_sight_s = 10 ** (-6.28 - 0.204 * np.log10(6.0))
    assert spread_s["urban-macro"] == spread_s["5g-midband"] == pytest.approx(without_sight_s, rel=0.01)
    for kind, carrier_ghz in (("indoor-office", 3.5), ("wifi", 5.25)):
        least_s = 10 ** (-7.692 - 0.01 * np.log10(1 + carrier_ghz))
        most_s = 10 ** (-7.173 - 0.28 * np.log10(1 + carrier_ghz))
        assert least_s < spread_s[kind] < most_s
