"""The cell: link budget by hand, two directions, delay, settings."""

import math

import numpy as np
import pytest
from pydantic import ValidationError

from fedsim.errors import PartError
from fedsim.network import NETWORKS, Cell, LogDistance, NoFading, Rayleigh, Shannon
from fedsim.registry import Component
from tests.support.media import built

BARE = {"access": "none"}
STEADY = Cell(fading=NoFading(), shadowing_sigma_db=0.0, **BARE)


def test_default_link_budget_by_hand():
    links = built(STEADY, [[600.0, 800.0]])
    # 1 km: 128.1 dB of loss; noise in 1 MHz -113.975 dBm; gap 3 dB.
    down_db = 36 - 128.1 + 113.975 - 9 - 3
    up_db = 23 - 128.1 + 113.975 - 5 - 3
    delay_s = 1000 / 299_792_458
    client, start_s = np.array([0]), np.array([12.0])
    for ask, expected, level_db in (
        (links.downlink_s, links.expected_downlink_s, down_db),
        (links.uplink_s, links.expected_uplink_s, up_db),
    ):
        by_hand = 1e6 / (1e6 * math.log2(1 + 10 ** (level_db / 10))) + delay_s
        assert ask(client, 1, start_s, 1e6)[0] == pytest.approx(by_hand, rel=1e-3)
        assert expected(1e6)[0] == pytest.approx(by_hand, rel=1e-3)


@pytest.mark.parametrize(("kind", "by_hand_s"), [("cell", 6e-3 + 7e-3 + 10e-3), ("nb-iot", 0.1 + 0.05 + 10e-3)])
def test_an_uplink_without_bits_takes_request_grant_and_the_way_to_the_server(kind, by_hand_s):
    links = built(NETWORKS.make(kind), [[0.0, 0.0]])
    assert links.uplink_s(np.array([0]), 1, np.zeros(1), 0.0)[0] == pytest.approx(by_hand_s, rel=1e-9)


def test_directions_fade_apart_and_are_shadowed_alike():
    uplink = {"transmit_power_dbm": 36.0, "noise_figure_db": 9.0}
    links = built(Cell(uplink=uplink, rate=Shannon(ceiling="none"), **BARE), np.full((40, 2), 200.0), 1)
    np.testing.assert_array_equal(links.expected_uplink_s(1e6), links.expected_downlink_s(1e6))
    assert np.unique(links.expected_uplink_s(1e6)).size == 40
    client, start_s = np.arange(40), np.zeros(40)
    assert not np.any(links.uplink_s(client, 1, start_s, 1e5) == links.downlink_s(client, 1, start_s, 1e5))


def test_time_decides_and_not_the_round():
    links = built(Cell(rate=Shannon(ceiling="none")), np.full((5, 2), 200.0), 1)
    client = np.arange(5)
    first = links.uplink_s(client, 1, np.full(5, 3.0), 1e6)
    np.testing.assert_array_equal(links.uplink_s(client, 2, np.full(5, 3.0), 1e6), first)
    assert not np.any(links.uplink_s(client, 1, np.full(5, 300.0), 1e6) == first)


@pytest.mark.statistical
def test_short_transfers_take_longer_than_the_fluid_value_on_average():
    clients = 10_000
    cell = Cell(fading=Rayleigh(coherence_s=1.0), shadowing_sigma_db=0.0, **BARE)
    links = built(cell, np.full((clients, 2), 1000.0), 4)
    bits = 1e6 / links.expected_uplink_s(1e6)[0]  # one second at the ergodic rate: about one block
    took = links.uplink_s(np.arange(clients), 1, np.zeros(clients), bits)
    fluid = links.expected_uplink_s(bits)[0]
    assert fluid == pytest.approx(1.0, abs=1e-4)
    assert took.mean() - 5 * took.std() / math.sqrt(clients) > fluid


@pytest.mark.parametrize(
    ("table", "path"),
    [
        ({"uplink": {"bandwidth_hz": -1.0}}, ("uplink", "bandwidth_hz")),
        ({"uplink": {"bandwith_hz": 1.0}}, ("uplink", "bandwith_hz")),
        ({"downlink": {"transmit_power_dbm": 1000.0}}, ("downlink", "transmit_power_dbm")),
        ({"downlink": {"power_dbm": 36.0}}, ("downlink", "power_dbm")),
        ({"uplink": {"receive_gain_dbi": 101.0}}, ("uplink", "receive_gain_dbi")),
        ({"downlink": {"noise_figure_db": -1.0}}, ("downlink", "noise_figure_db")),
        ({"shadowing_sigma_db": -1.0}, ("shadowing_sigma_db",)),
        ({"rate": {"kind": "shannon", "snr_gap_db": math.nan}}, ("rate", "snr_gap_db")),
        ({"rate": {"kind": "shannon", "ceiling": "nothing"}}, ("rate", "ceiling")),
        ({"rate": {"kind": "shannon", "ceiling": 0.0}}, ("rate", "ceiling")),
        ({"rate": {"kind": "cqi", "attempts": 0}}, ("rate", "attempts")),
        ({"rate": {"kind": "cqi", "table": "wifi", "gap": "nr-ldpc"}}, ("rate",)),
        ({"sites": {"load": 1.5}}, ("sites", "load")),
        ({"fading": "ricean"}, ("fading",)),
        ({"fading": {"kind": "rayleigh", "coherence_s": 0.0}}, ("fading", "coherence_s")),
        ({"kind": "urban-macro", "uplink": {"bandwith_hz": 1.0}}, ("uplink", "bandwith_hz")),
        ({"kind": "urban-macro", "path_loss": {"carrier_hz": 1.0}}, ("path_loss", "carrier_hz")),
        ({"kind": "urban-macro", "radius_m": 3.0}, ("radius_m",)),
    ],
)
def test_wrong_settings_are_refused_by_path(table, path):
    with pytest.raises(ValidationError) as caught:
        NETWORKS.make({"kind": "cell", **table})
    assert caught.value.errors()[0]["loc"] == path


def test_gains_of_both_antennas_count_like_power():
    place = np.array([[600.0, 800.0]])
    one, other = (
        built(Cell(fading=NoFading(), shadowing_sigma_db=0.0, uplink=uplink), place).expected_uplink_s(1e6)
        for uplink in (
            {"transmit_power_dbm": 26.0},
            {"transmit_power_dbm": 11.0, "transmit_gain_dbi": 3.0, "receive_gain_dbi": 12.0},
        )
    )
    np.testing.assert_array_equal(one, other)


class Broken(Component):
    """A user's path loss that fails far out."""

    def loss_db(self, distance_m):
        return np.where(np.asarray(distance_m) > 100, np.nan, 50.0)


def test_a_path_loss_that_is_no_number_is_refused():
    assert built(Cell(path_loss=Broken()), [[50.0, 0.0]]).expected_uplink_s(1.0).shape == (1,)
    with pytest.raises(PartError, match=r"path loss .*Broken\.loss_db returned nan") as caught:
        built(Cell(path_loss=Broken()), [[50.0, 0.0], [150.0, 0.0]])
    assert caught.value.client == 1, "the one at 150 m"


def test_a_client_at_the_antenna_is_only_fast():
    links = built(Cell(path_loss=LogDistance(), access="none"), [[0.0, 0.0]])
    # 7.4 bit/s/Hz, the ceiling of the default rate law, in 1 MHz.
    assert links.uplink_s(np.array([0]), 1, np.zeros(1), 1e6)[0] == pytest.approx(1 / 7.4, rel=1e-12)


def test_what_matters_to_a_network_is_declared():
    # Whether sizes matter to a latency law depends on its transport.
    assert {kind: NETWORKS.load(kind).requires for kind in NETWORKS.builtin if kind != "latency"} == {
        "pause-two-speed": frozenset(),
        **dict.fromkeys(("cell", "fedscale", "graph", "rate-traces"), frozenset({"model-bits"})),
        **dict.fromkeys(("urban-macro", "indoor-office", "wifi", "wifi-dcf"), frozenset({"model-bits"})),
        **dict.fromkeys(("nb-iot", "5g-midband", "lora", "satellite"), frozenset({"model-bits"})),
    }
    assert NETWORKS.make("wifi").provides == {"sites"}
