"""Powers and bandwidths of clients that differ."""

import numpy as np
import pytest
from pydantic import ValidationError

from fedsim.errors import ScenarioError
from fedsim.network import NETWORKS
from tests.support.media import built

PLACES = np.array([[100.0, 0.0], [0.0, 300.0], [200.0, 50.0]])
SITES = {"inter_site_distance_m": 500.0, "load": 0.5, "uplink_backoff_db": 20.0, "serving_rings": 1}


def facts(sites=None, **uplink):
    cell = {"kind": "cell", "uplink": uplink, **({} if sites is None else {"sites": sites})}
    return built(NETWORKS.make(cell), PLACES, 1).describe()


def test_decibels_of_power_are_decibels_of_snr():
    alike, own = facts(), facts(transmit_power_dbm=[23.0, 13.0, 20.0])
    np.testing.assert_allclose(10 * np.log10(own.snr[1] / alike.snr[1]), [0.0, -10.0, -3.0], atol=1e-9)
    np.testing.assert_array_equal(own.snr[0], alike.snr[0])
    np.testing.assert_array_equal(facts(transmit_power_dbm=[23.0] * 3).snr, alike.snr)


def test_each_client_has_the_rate_and_the_times_of_a_cell_with_its_bandwidth():
    def made(width):
        links = built(NETWORKS.make({"kind": "cell", "uplink": {"bandwidth_hz": width}}), PLACES, 1)
        told = links.describe()
        return np.array([told.snr[1], told.rate_bps[1], links.uplink_s(np.arange(3), 1, np.zeros(3), 1e6)])

    hertz = [1e6, 4e6, 2.5e5]
    alike = np.array([made(width)[:, client] for client, width in enumerate(hertz)])
    np.testing.assert_allclose(made(hertz), alike.T, rtol=1e-9)


def test_interference_of_other_cells_has_the_mean_power():
    """Equal powers as a list are one power; a client with more power has a better effective SNR."""
    alike = facts(SITES)
    np.testing.assert_allclose(facts(SITES, transmit_power_dbm=[23.0] * 3).snr, alike.snr)
    own = facts(SITES, transmit_power_dbm=[26.0, 20.0, 23.0]).snr[1] / alike.snr[1]
    assert own[0] > 1 > own[1]
    assert own[2] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ({"uplink": {"bandwidth_hz": [1e6] * 3, "sharing": "equal"}}, "uplink.bandwidth_hz: a value for each client"),
        ({"uplink": {"bandwidth_hz": [1e6] * 3}, "delay_spread_s": 1e-7}, "not allowed where spectrum is shared"),
        ({"downlink": {"transmit_power_dbm": [1.0, 200.0]}}, "less than or equal to 100"),
        ({"downlink": {"bandwidth_hz": {"kind": "normal", "mean": 1e6, "std": 1e5}}}, "must be numbers above 0"),
    ],
)
def test_what_cannot_differ_is_refused(cell, said):
    with pytest.raises(ValidationError, match=said):
        NETWORKS.make({"kind": "cell", **cell})


def test_lists_that_do_not_fit_are_refused():
    topology = {"kind": "star", "backhaul": {"capacity_bps": 1e7, "delay_s": 0.01}}
    access = {"kind": "radio", "delay_s": 0.005, "cell": {"kind": "cell", "uplink": {"transmit_power_dbm": [1.0, 2.0]}}}
    with pytest.raises(ValidationError, match="for each client is not allowed in a graph"):
        NETWORKS.make({"kind": "graph", "topology": topology, "access": access})
    with pytest.raises(ScenarioError, match=r"network\.uplink\.transmit_power_dbm: a list of 2 values"):
        facts(transmit_power_dbm=[1.0, 2.0])
