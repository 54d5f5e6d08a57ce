"""LoRa: times on air by hand, the choice of the spreading factor, messages of many packets under a duty cycle."""

import numpy as np
import pytest
from pydantic import ValidationError

from fedsim.network import NETWORKS
from fedsim.network.lora import FACTORS, LEAST_SNR_DB, LoRa, airtime_s
from fedsim.testing import check_network
from fedsim.units import db_to_linear
from tests.support.media import built, finish, opened


@pytest.mark.parametrize(
    ("payload", "factor", "coding_rate", "by_hand_ms"),
    [
        # 12.25 symbols of 1.024 ms, and 8 + ceil(176 / 28) 5 = 43.
        (20, 7, 1, (12.25 + 43) * 1.024),
        # 12.25 of 32.768 ms, and 8 + ceil(156 / 40) 5 = 28: above 16 ms, so that 12 - 2 bits are in a symbol.
        (20, 12, 1, (12.25 + 28) * 32.768),
        # 12.25 of 8.192 ms, and 8 + ceil(412 / 40) 8 = 96.
        (51, 10, 4, (12.25 + 96) * 8.192),
    ],
)
def test_time_on_air_by_hand(payload, factor, coding_rate, by_hand_ms):
    found_s = airtime_s(np.array([payload]), np.array([factor]), 125e3, coding_rate, 8)
    assert found_s[0] == pytest.approx(by_hand_ms / 1e3, rel=1e-12)


def test_the_fastest_factor_with_a_margin_else_the_slowest_that_is_received():
    network = LoRa(margin_db=10.0)
    snr_db = np.concatenate([LEAST_SNR_DB + 10.001, LEAST_SNR_DB[-1] + np.array([5.0, 0.001, -0.001])])
    assert network.factors(db_to_linear(snr_db)).tolist() == [*FACTORS, 12, 12, 0]


def test_a_message_of_many_packets_waits_for_the_duty_cycle():
    """300 bytes at SF10 are five packets of 51 bytes and one of 45; each of the five is followed by 99 times itself."""
    network = LoRa()
    full_s, last_s = airtime_s(np.array([64, 58]), np.array([10, 10]), 125e3, 1, 8)
    took_s = network.message_s(2400.0, np.array([10, 0]), 0.01)
    assert took_s.tolist() == pytest.approx([5 * full_s * 100 + last_s, np.inf])
    assert network.message_s(0.0, np.array([7]), 0.01)[0] == airtime_s(np.array([13]), np.array([7]), 125e3, 1, 8)[0]


def test_a_link_budget_by_hand():
    """14 dBm, 128.95 dB at 1 km, noise -174 + 51 + 6 dBm: an SNR of 2 dB, above SF7's -7.5 by less than 10 dB."""
    network = LoRa(shadowing_sigma_db=0.0)
    links = built(network, [[1000.0, 0.0], [500.0, 0.0], [50_000.0, 0.0]])
    # Half a kilometre has 23.2 log10(2) = 7 dB less; 50 km 39.4 dB more, an SNR of -37 dB, and of -24 dB downlink.
    assert links.up.tolist() == [8, 7, 0]
    assert links.down.tolist() == [7, 7, 0]
    assert np.isinf(links.uplink_s(np.array([2]), 1, np.zeros(1), 8.0)[0])


def test_uplinks_of_one_factor_collide_on_three_channels():
    """Five clients at one place, a packet each: a packet gets through with (1 - 0.02 / 3)^4, else it is sent again."""
    network = LoRa(shadowing_sigma_db=0.0)
    medium, env = opened(network, [[500.0, 0.0]] * 5)
    links = built(network, [[500.0, 0.0]] * 5)
    assert (links.shared.down, links.shared.up) == (False, True)
    air_s = airtime_s(np.array([33]), links.up[:1], 125e3, 1, 8)[0]
    kept = (1 - 0.02 / 3) ** 4
    ends_s = finish(env, *(medium.uplink(client, 160.0) for client in range(5)))
    np.testing.assert_allclose(ends_s, (1 / kept - 1) * 100 * air_s + air_s + links.delay_s, rtol=1e-9)
    alone, env = opened(network, [[500.0, 0.0]])
    assert finish(env, alone.uplink(0, 160.0)) == pytest.approx(links.uplink_s(np.array([0]), 1, np.zeros(1), 160.0))


def test_unlike_factors_and_much_stronger_clients_do_not_suffer():
    """At 500 m SF7, at 1,000 m SF8; at 100 m SF7 as at 500 m and 16 dB stronger."""
    network = LoRa(shadowing_sigma_db=0.0)
    places = np.array([[100.0, 0.0], [500.0, 0.0], [1000.0, 0.0]])
    medium, env = opened(network, places)
    links = built(network, places)
    assert links.up.tolist() == [7, 7, 8]
    ends_s = finish(env, *(medium.uplink(client, 160.0) for client in range(3)))
    alone_s = links.uplink_s(np.arange(3), 1, np.zeros(3), 160.0)
    assert ends_s[0] == pytest.approx(alone_s[0])
    assert ends_s[2] == pytest.approx(alone_s[2])
    # While the strong one sends, the share 0.02 / 3 of the weak one's packet is lost, and made up for after that.
    air_s = alone_s[1] - links.delay_s[1]
    assert ends_s[1] == pytest.approx(alone_s[1] + 0.02 / 3 * air_s, rel=1e-6)


def test_powers_may_differ_and_clients_are_described():
    """14 dB less at 500 m: SNRs of 9 and -5 dB, of which SF7 needs 2.5 with the margin; 222 bytes of 400 ms at 1 %."""
    network = NETWORKS.make({"kind": "lora", "shadowing_sigma_db": 0.0, "uplink_power_dbm": [14.0, 0.0]})
    links = built(network, [[500.0, 0.0], [300.0, 400.0]])
    assert links.up.tolist() == [7, 10]
    assert links.down.tolist() == [7, 7]
    facts = links.describe()
    assert facts.distance_m == pytest.approx([500.0, 500.0])
    uplink_db = 10 * np.log10(facts.snr[1])
    assert uplink_db[0] - uplink_db[1] == pytest.approx(14.0)
    air_s = airtime_s(np.array([222 + 13, 51 + 13]), np.array([7, 10]), 125e3, 1, 8)
    assert facts.rate_bps[1] == pytest.approx(8 * np.array([222, 51]) / air_s * 0.01)


def test_without_collisions_uplinks_are_dedicated():
    links = built(LoRa(collisions="none"), np.ones((2, 2)))
    assert not any(links.shared)


def test_a_channel_that_is_never_free_is_refused():
    with pytest.raises(ValidationError, match=r"uplink_duty_cycle = 0\.6 is not allowed with 1 channel"):
        LoRa(channels=1, uplink_duty_cycle=0.6)
    LoRa(channels=1, uplink_duty_cycle=0.6, collisions="none")


def test_the_contract_is_kept():
    check_network({"kind": "lora", "collisions": "none"}, bits=5e4, radius_m=5000.0)
    check_network("lora", bits=5e4, radius_m=5000.0)
    check_network(NETWORKS.make({"kind": "lora", "path_loss": "uma", "uplink_duty_cycle": 1.0}), bits=1e4)
