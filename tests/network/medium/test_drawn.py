"""Shares over drawn fading against dedicated bandwidth, a simulator that steps block by block, and means."""

import math
from dataclasses import replace

import numpy as np
import pytest
import simpy
from hypothesis import given, strategies as st

from fedsim.network import Cell, Rayleigh, Shannon
from fedsim.network.medium import drawn
from fedsim.network.medium.drawn import DrawnSpectrum
from fedsim.network.medium.drawn_rules import BestGainTime, EqualBand, FairTime, FirstComeTime, MakespanBand
from fedsim.network.radio import channel as channels
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.fading import NoFading
from fedsim.rounds.effects.audit.audit import check_book
from fedsim.streams import Streams
from tests.support.media import built, ends_of, finish, played
from tests.support.step_by_step import scheduled_by_rate_over_average

BAND_HZ, BLOCK_S = 1e6, 0.02
SNR = np.array([10.0, 1.0, 100.0, 0.1, 3.0])


def fair(channel):
    return FairTime(channel, 1.0)


RULES = {
    "equal": EqualBand,
    "together": MakespanBand,
    "first-come": FirstComeTime,
    "best gain": BestGainTime,
    "fair": fair,
}
SPLITS = ("equal", "first-come", "best gain")


def radio(snr=SNR, densest=math.inf, fading=None, seed=3):
    fading = fading or Rayleigh(coherence_s=BLOCK_S)
    return Channel(
        snr, BAND_HZ, fading, "fading-uplink", Streams(seed), Shannon(ceiling="none"), np.full(snr.size, densest)
    )


def play(channel, make, script):
    """Send (client, start, bits, when cancelled or None); return ends and bits by number of line, and the medium."""
    env = simpy.Environment()
    medium = DrawnSpectrum(env, channel, make(channel))
    lines = [(line, start_s, (client, bits), cancel_s) for line, (client, start_s, bits, cancel_s) in enumerate(script)]
    ends, flows = played(env, medium.send, lines)
    return ends, {line: flow.sent_bits() for line, flow in flows.items()}, medium


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("bits", "spread_s", "most"),
    [(1e2, 0.0, 10), (1e5, 0.0, 10**6), (5e6, 0.0, 10), (5e6, 0.0, 10**6), (2e7, 1e-6, 10**6)],
)
def test_a_client_alone_takes_as_long_as_with_dedicated_bandwidth(rule, bits, spread_s, most, monkeypatch):
    """After the most blocks that are drawn both go on at the ergodic rate."""
    monkeypatch.setattr(drawn, "MOST_BLOCKS", most)
    monkeypatch.setattr(channels, "MOST_BLOCKS", most)
    channel, start_s = replace(radio(), delay_spread_s=spread_s, bandwidth_hz=5e6 if spread_s else BAND_HZ), 1.2345
    ends, _, medium = play(channel, RULES[rule], [(2, start_s, bits, None)])
    alone_s = channel.transfer_s(np.array([2]), np.array([start_s]), bits)[0]
    assert ends[0] - start_s == pytest.approx(alone_s, rel=1e-11, abs=1e-12)
    assert medium.book().received == pytest.approx(channel.bandwidth_hz * alone_s)
    check_book("uplink", medium.book())


def test_a_narrow_share_of_a_band_that_fades_in_parts_varies_as_a_band_of_its_width():
    """With spread power an eighth of 16 MHz at 363 ns has the rates of 2 MHz, and a tiny part flat ones."""
    wide = replace(radio(np.full(8, 10.0), 1.0), delay_spread_s=363e-9, bandwidth_hz=16e6)
    own = replace(wide, bandwidth_hz=2e6)
    block = np.arange(4000)
    rates = wide.share_rates
    drawn = rates.draw(np.zeros(1, dtype=np.int64), block[:, None])
    part = np.array([1 / 8])
    found = part * rates.rate_bps(wide.snr[:1], wide.ergodic_rate_bps[:1] / 16e6, drawn, part)
    np.testing.assert_allclose(found[:, 0], own.rate_bps(0, block), rtol=1e-3)
    tiny = 2.0**-9 * rates.rate_bps(wide.snr[:1], wide.ergodic_rate_bps[:1] / 16e6, drawn, np.array([2.0**-9]))
    flat = replace(wide, bandwidth_hz=16e6 / 2**9, delay_spread_s=0.0)
    np.testing.assert_allclose(tiny[:, 0], flat.rate_bps(0, block), rtol=1e-12)


def by_blocks(channel, rule, script):
    """Return ends and bits by number of line: an event list that stops at every block, start, cancellation and end."""
    left, came, ends, sent, now = {}, {}, {}, {}, 0.0
    stops = sorted({t for _, start, _, cancel in script for t in (start, cancel) if t is not None})
    while stops or left:
        block = math.floor(now / BLOCK_S + 1e-9)
        limit = min([(block + 1) * BLOCK_S, *stops[:1]])
        gain = {line: float(channel.share_rates.draw(np.array([script[line][0]]), block)[0]) for line in left}
        share = dict.fromkeys(left, 0.0)
        if left:
            chosen = {
                "equal": list(left),
                "first-come": [min(left, key=lambda line: (came[line], line))],
                "best gain": [line for line in left if gain[line] == max(gain.values())],
            }[rule]
            share.update(dict.fromkeys(chosen, 1 / len(chosen)))
        rate = {}
        for line in left:
            client, part = script[line][0], share[line]
            power = min(1 / part, channel.densest[client]) if rule == "equal" else 1.0
            snr = channel.snr[client] * power * gain[line] / 10**0.3
            rate[line] = BAND_HZ * part * math.log2(1 + snr) if part else 0.0
        ending = {line: now + left[line] / rate[line] for line in left if rate[line]}
        first = min(ending, key=ending.get, default=None)
        until = limit if first is None or ending[first] > limit else ending[first]
        for line in list(left):
            left[line] -= rate[line] * (until - now)
        now = until
        if first is not None and ending[first] == until:
            ends[first] = now
            sent[first] = script[first][2]
            del left[first]
        elif stops and now == stops[0]:
            stops.pop(0)
            for line, (_, start, bits, cancel) in enumerate(script):
                if cancel == now and line in left:
                    sent[line] = bits - left.pop(line)
                if start == now:
                    left[line], came[line] = bits, now
    return ends, sent


LINES = st.lists(
    st.tuples(st.integers(0, SNR.size - 1), st.floats(0, 0.2), st.floats(1e3, 1e5), st.none() | st.floats(0.001, 0.3)),
    min_size=1,
    max_size=7,
)


@pytest.mark.parametrize("rule", SPLITS)
@given(lines=LINES, densest=st.sampled_from([1.0, 2.5, math.inf]))
def test_ends_and_bits_are_those_of_a_simulator_that_steps_block_by_block(rule, lines, densest):
    script = [(client, start, bits, None if after is None else start + after) for client, start, bits, after in lines]
    channel = radio(densest=densest)
    ends, sent, medium = play(channel, RULES[rule], script)
    expected_ends, expected_sent = by_blocks(channel, rule, script)
    assert ends == pytest.approx(expected_ends, rel=1e-9)
    assert sent == pytest.approx(expected_sent, rel=1e-7, abs=1e-4)
    check_book("uplink", medium.book())


def crowd(count=60, seed=5):
    """Return a script of many clients that start within five blocks; every third gives up in the sixth."""
    rng = np.random.default_rng(seed)
    starts_s, bits = np.sort(rng.uniform(0.0, 5 * BLOCK_S, count)), rng.uniform(1e3, 3e4, count)
    return [(line, float(starts_s[line]), float(bits[line]), None if line % 3 else 0.11) for line in range(count)]


@pytest.mark.parametrize("densest", [1.0, math.inf])
@pytest.mark.parametrize("rule", SPLITS)
def test_many_transfers_go_as_in_a_simulator_that_steps_block_by_block(rule, densest):
    """More transfers than those whose gains are drawn ahead, some of them at links ten thousand times as good."""
    channel = radio(np.geomspace(0.1, 1e3, 60), densest)
    ends, sent, medium = play(channel, RULES[rule], crowd())
    expected, expected_sent = by_blocks(channel, rule, crowd())
    assert ends == pytest.approx(expected, rel=1e-9)
    assert sent == pytest.approx(expected_sent, rel=1e-9, abs=1e-4)
    check_book("uplink", medium.book())


@pytest.mark.parametrize("rule", ["together", "fair"])
@pytest.mark.parametrize(("name", "value"), [("_MANY", 10**9), ("_ELEMENTS", 1)])
def test_how_far_is_looked_ahead_changes_nothing(rule, name, value, monkeypatch):
    channel = radio(np.geomspace(0.1, 1e3, 60))
    ends, *_ = play(channel, RULES[rule], crowd())
    monkeypatch.setattr(drawn, name, value)
    one_by_one, *_ = play(channel, RULES[rule], crowd())
    assert ends == pytest.approx(one_by_one, rel=1e-9)


@pytest.mark.parametrize("rule", RULES)
@given(lines=LINES, until_s=st.floats(0.01, 0.3))
def test_books_balance_and_questions_change_nothing(rule, lines, until_s):
    """Bits and books are asked for at some instant of one of two runs."""
    channel, ends = radio(), []
    for asked in (False, True):
        env = simpy.Environment()
        medium = DrawnSpectrum(env, channel, RULES[rule](channel))
        flows = [medium.send(client, bits) for client, _, bits, _ in lines]
        done = ends_of(env, dict(enumerate(flows)))
        env.run(until=until_s)
        if asked:
            book, sent = medium.book(), [flow.sent_bits() for flow in flows]
            check_book("uplink", book)
            assert all(0 <= bits <= flow.bits for bits, flow in zip(sent, flows, strict=True))
            assert [flow.done.processed for flow in flows] == [flow.row < 0 for flow in flows]
        env.run()
        book = medium.book()
        check_book("uplink", book)
        assert book.carried == pytest.approx(sum(flow.work_done for flow in flows)) == pytest.approx(book.received)
        ends.append(done)
    assert ends[0] == ends[1]


@pytest.mark.parametrize("rule", ["equal", "fair", "best gain"])
def test_without_fading_time_and_band_are_shared_equally(rule):
    """Spread power: each of three has a third of what it carries alone, whoever came first."""
    channel = radio(np.array([1.0, 1.0, 1.0]), 1.0, NoFading())
    alone = BAND_HZ * math.log2(1 + 1 / 10**0.3)
    ends, *_ = play(channel, RULES[rule], [(0, 0.0, alone, None), (1, 0.5, alone, None), (2, 0.5, alone, None)])
    assert ends == {0: pytest.approx(2.0), 1: pytest.approx(2.75 + 0.25), 2: pytest.approx(3.0)}


@pytest.mark.parametrize("rule", RULES)
def test_nothing_takes_no_time_and_a_dead_link_waits_for_ever(rule):
    env = simpy.Environment()
    channel = radio(np.array([0.0, 1.0]))
    medium = DrawnSpectrum(env, channel, RULES[rule](channel))
    dead, empty, alive = medium.send(0, 1.0), medium.send(1, 0.0), medium.send(1, 1e3)
    far = medium.send(1, 1e3, 10.0)
    env.run(until=5.0)
    assert [one.done.processed for one in (dead, empty, alive, far)] == [False, True, True, False]
    assert far.sent_bits() == 1e3
    far.cancel()
    dead.cancel()
    env.run(until=20.0)
    assert (far.done.triggered, medium.present, medium.book().lost) == (False, 0, far.work_done)
    check_book("uplink", medium.book())


def test_first_come_waits_count_as_queue():
    env = simpy.Environment()
    channel = radio(fading=NoFading())
    medium = DrawnSpectrum(env, channel, FirstComeTime(channel))
    one, other = medium.send(0, 1e6), medium.send(1, 1e6)
    env.run(until=one.done)
    ended_s = env.now
    env.run(until=other.done)
    assert (one.queued_s(), other.queued_s()) == (0.0, ended_s)


def test_a_share_has_the_draws_of_its_own_client_whatever_the_mean_reading_says():
    """Ten uploads of a cohort of five have one time where means count, and ten where fading is drawn."""
    times = {}
    for read in ("mean", "drawn"):
        up = {"sharing": "equal", "bandwidth_hz": 1e6, "fading_in_shares": read}
        links = built(Cell(uplink=up, shadowing_sigma_db=0.0, access="none"), np.full((5, 2), 800.0), 1)
        env, took = simpy.Environment(), []
        air = links.open(env)
        for _ in range(10):
            began_s = env.now
            took += [end - began_s for end in finish(env, *(air.uplink(client, 1e6) for client in range(5)))]
        times[read] = np.array(took)
    assert times["mean"].std() < 1e-9
    assert times["drawn"].std() > 0.05 * times["drawn"].mean()


@pytest.mark.parametrize("densest", [1.0, math.inf])
def test_together_gives_parts_with_which_all_would_end_at_one_instant(densest):
    """Without fading they do, in the least time: no client can have more without another one ending later."""
    channel = radio(SNR, densest, NoFading())
    bits = [(client, 0.0, 1e6 * (1 + client), None) for client in range(SNR.size)]
    ends, _, medium = play(channel, MakespanBand, bits)
    assert np.ptp(list(ends.values())) < 2e-3 * ends[0]
    equal, *_ = play(channel, EqualBand, bits)
    assert max(ends.values()) <= max(equal.values()) * (1 + 1e-6)
    check_book("uplink", medium.book())


@pytest.mark.parametrize("window_s", [0.1, pytest.param(1.0, marks=pytest.mark.slow)])
def test_proportional_fairness_is_that_of_a_scheduler_that_looks_at_every_slot(window_s):
    """SNRs of 0 to 20 dB, of which the higher ones have more of the time."""
    snr, blocks, fading = 10 ** (np.array([0.0, 5.0, 10.0, 15.0, 20.0]) / 10), 3000, Rayleigh(coherence_s=BLOCK_S)
    channel = radio(snr, 1.0, fading)
    env = simpy.Environment()
    medium = DrawnSpectrum(env, channel, FairTime(channel, window_s))
    flows = [medium.send(client, 1e12) for client in range(snr.size)]
    env.run(until=blocks * BLOCK_S)
    found = np.array([flow.sent_bits() for flow in flows]) / (blocks * BLOCK_S * BAND_HZ)
    gain = fading.gain_quantile(np.random.default_rng(5).random((blocks, snr.size)))
    expected, times = scheduled_by_rate_over_average(channel.rate.efficiency(snr * gain), window_s / 0.001, 20)
    np.testing.assert_allclose(found, expected, rtol=0.05)
    assert times[-1] - times[0] > 0.05 * window_s
