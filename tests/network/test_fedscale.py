"""FedScale's network: constant rates, both ways, from the published statistics or a file."""

import math
import pickle

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from fedsim.errors import DataError
from fedsim.network import NETWORKS
from tests.support.media import built

CLIENTS = 20_000


def rates_kbps(clients=CLIENTS, seed=1, **options):
    links = built(NETWORKS.make({"kind": "fedscale", **options}), np.zeros((clients, 2)), seed)
    return 1.0 / links.expected_uplink_s(1024.0)


@pytest.mark.statistical
def test_rates_are_those_of_the_published_statistics():
    kbps = rates_kbps()
    inside = kbps[(kbps > 100) & (kbps < 200_000)]
    oracle = stats.lognorm(1.10, scale=6100.0)
    limit = math.sqrt(math.log(2 / 1e-6) / (2 * CLIENTS))  # Dvoretzky-Kiefer-Wolfowitz at 1e-6
    assert stats.kstest(inside, oracle.cdf).statistic < limit + oracle.sf(200_000) + oracle.cdf(100)
    # Third-party measurements on the table: median 6.1 Mbit/s, 26 % below 3 Mbit/s.
    assert (kbps < 6100).mean() == pytest.approx(0.5, abs=5 * math.sqrt(0.25 / CLIENTS))
    assert (kbps < 3000).mean() == pytest.approx(0.26, abs=5 * math.sqrt(0.26 * 0.74 / CLIENTS) + 0.005)
    clipped = rates_kbps(lowest_kbps=3000.0, highest_kbps=7000.0)
    assert (clipped.min(), clipped.max()) == (pytest.approx(3000.0), pytest.approx(7000.0))


def test_a_transfer_is_bits_over_rate_both_ways_and_in_every_round():
    links = built(NETWORKS.make("fedscale"), np.zeros((5, 2)), 3)
    some, start_s = np.array([4, 1]), np.array([0.0, 9.0])
    down = links.downlink_s(some, 1, start_s, 5e6)
    np.testing.assert_allclose(down, 5e6 / 1024 / rates_kbps(5, 3)[some])
    np.testing.assert_array_equal(down, links.uplink_s(some, 7, start_s + 5, 5e6))
    np.testing.assert_array_equal(links.expected_downlink_s(5e6)[some], down)
    np.testing.assert_array_equal(rates_kbps(9, 3)[:5], rates_kbps(5, 3))


def test_rates_from_a_file(tmp_path):
    file = tmp_path / "capacity.csv"
    file.write_text("computation,communication\n153,2210\n29,6924\n")
    assert rates_kbps(3, path=str(file), mapping="sequential").tolist() == pytest.approx([2210, 6924, 2210])
    assert set(rates_kbps(50, path=str(file)).round().tolist()) == {2210.0, 6924.0}
    dead = tmp_path / "dead.pkl"
    dead.write_bytes(pickle.dumps({1: {"computation": 5.0, "communication": 0}}))
    with pytest.raises(DataError, match=r"communication, row 1: 0\.0 is not allowed; allowed: numbers of at"):
        rates_kbps(1, path=str(dead))


def test_a_range_that_falls_is_refused():
    with pytest.raises(ValidationError, match="lowest_kbps"):
        NETWORKS.make({"kind": "fedscale", "lowest_kbps": 10.0, "highest_kbps": 5.0})
