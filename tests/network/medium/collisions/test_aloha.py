"""Colliding packets: ALOHA's closed form, single packets drawn one by one, and messages on the clock by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.clock import Environment
from fedsim.network.medium.collisions.aloha import AlohaChannel, kept_shares
from tests.support.media import finish


@pytest.mark.parametrize("stations", [20, 100, 400])
def test_many_stations_of_one_power_keep_the_share_of_pure_aloha(stations):
    """Abramson, 1970: exp(-2 G), with G = N d / c packets per airtime and channel."""
    duty, channels = 0.01, 3
    kept = kept_shares(np.zeros(stations), 2 * duty / channels, 6.0)
    assert kept == pytest.approx(math.exp(-2 * stations * duty / channels), rel=0.011)
    assert np.ptp(kept) == 0.0


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=12), st.floats(0, 20), st.floats(0, 0.5))
def test_only_stations_that_are_not_much_weaker_do_harm(level_db, capture_db, overlap):
    """Counted one pair after another."""
    kept = kept_shares(np.array(level_db), overlap, capture_db)
    for i, mine in enumerate(level_db):
        harmful = sum(j != i and other > mine - capture_db for j, other in enumerate(level_db))
        assert kept[i] == pytest.approx((1 - overlap) ** harmful)


@pytest.mark.statistical
def test_packets_drawn_one_by_one_get_through_as_often():
    """Fifteen stations of 5 % on two channels: each sends at a random instant of its period on a random channel."""
    rng = np.random.default_rng(5)
    stations, duty, channels, periods = 15, 0.05, 2, 20_000
    level_db = rng.normal(0.0, 5.0, stations)
    starts, channel = rng.random((periods, stations)), rng.integers(channels, size=(periods, stations))
    apart = np.abs(starts[:, :, None] - starts[:, None, :])
    overlaps = (np.minimum(apart, 1 - apart) < duty) & (channel[:, :, None] == channel[:, None, :])
    harms = level_db[None, :] > level_db[:, None] - 6.0
    np.fill_diagonal(harms, False)
    kept = (~(overlaps & harms).any(axis=2)).mean(axis=0)
    expected = kept_shares(level_db, 2 * duty / channels, 6.0)
    np.testing.assert_allclose(kept, expected, atol=4.5 * np.sqrt(0.25 / periods))


def test_a_message_alone_takes_its_packets_and_the_gaps_between_them():
    """Four packets of 1 s in periods of 10 s: the last ends after 31 s; halfway half of its bits are there."""
    env = Environment()
    transfer = AlohaChannel(env, 0.1, 6.0).send(800.0, 40.0, 9.0, 0.0, 0.5, 0.1)
    env.run(until=15.5)
    assert transfer.sent_bits() == pytest.approx(400.0)
    assert transfer.on_air_s(15.5) == pytest.approx(2.0)
    assert finish(env, transfer) == pytest.approx([31.5])
    assert (transfer.sent_bits(), transfer.on_air_s(31.5)) == (800.0, pytest.approx(4.0))


def test_two_alike_repeat_what_collides():
    """Each packet gets through with 0.8: 40 / 0.8 - 9 s. If the second begins at 10 s, the first is alone till then."""
    env = Environment()
    channel = AlohaChannel(env, 0.2, 6.0)
    both = [channel.send(8.0, 40.0, 9.0, 0.0, 0.0, 0.1) for _ in range(2)]
    assert finish(env, *both) == pytest.approx([41.0, 41.0])
    assert both[0].on_air_s(41.0) == pytest.approx(4.0 / 0.8)
    env = Environment()
    channel = AlohaChannel(env, 0.2, 6.0)
    first = channel.send(8.0, 40.0, 9.0, 0.0, 0.0, 0.1)
    env.run(until=10.0)
    second = channel.send(8.0, 40.0, 9.0, 0.0, 0.0, 0.1)
    # The first has 30 s of periods left: 30 / 0.8 - 9 = 28.5 s. Then 40 - 0.8 * 28.5 = 17.2 s are left of the second.
    assert finish(env, first, second) == pytest.approx([38.5, 38.5 + 17.2 - 9.0])


def test_the_stronger_of_two_is_not_disturbed():
    env = Environment()
    channel = AlohaChannel(env, 0.2, 6.0)
    strong, weak = (channel.send(8.0, 40.0, 9.0, level_db, 0.0, 0.1) for level_db in (6.0, 0.0))
    # The weak one has had 0.8 * 31 s when the strong one ends.
    assert finish(env, strong, weak) == pytest.approx([31.0, 31.0 + (40 - 24.8) - 9.0])


def test_a_cancelled_message_does_no_more_harm():
    env = Environment()
    channel = AlohaChannel(env, 0.5, 6.0)
    first, second = (channel.send(8.0, 40.0, 9.0, 0.0, 0.0, 0.1) for _ in range(2))
    env.run(until=20.0)
    kept = second.sent_bits()
    assert kept == pytest.approx(8.0 * 20 / (40 / 0.5 - 9))
    second.cancel()
    second.cancel()
    # 30 s of periods are left of the first.
    assert finish(env, first) == pytest.approx([20.0 + 30.0 - 9.0])
    assert second.sent_bits() == kept
    assert not second.done.triggered


def test_a_message_that_cannot_be_received_never_ends_and_does_no_harm():
    env = Environment()
    channel = AlohaChannel(env, 0.2, 6.0)
    lost, heard = (channel.send(8.0, whole_s, 9.0, 0.0, 0.0, 0.1) for whole_s in (math.inf, 40.0))
    assert finish(env, heard) == pytest.approx([31.0])
    assert lost.sent_bits() == 0.0
