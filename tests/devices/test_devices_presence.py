"""Who is there when: always, tosses, on/off chains and the hours of the day."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

from fedsim.devices import AVAILABILITIES, Devices
from fedsim.devices.diurnal import DailyClock, Diurnal, arrival_rates
from fedsim.devices.flash import Flash, QuantileLaw
from fedsim.devices.onoff import Markov, count_until
from fedsim.streams import Streams


def dkw(number):
    """Return the Dvoretzky-Kiefer-Wolfowitz bound on a distribution function at 1e-6."""
    return math.sqrt(math.log(2 / 1e-6) / (2 * number))


def walk(presence, client, until_s):
    """Return the sojourns of one client until an instant, by going from change to change."""
    time_s, sojourns = 0.0, []
    one = np.array([client])
    while time_s < until_s:
        on, left_s = presence.state(one, time_s)
        sojourns.append((bool(on[0]), time_s, time_s + float(left_s[0])))
        time_s = float(np.nextafter(time_s + left_s[0], np.inf))
    return sojourns


def test_always():
    presence = AVAILABILITIES.make("always").build(3, Streams(0))
    assert presence.available(np.array([0, 2]), 5.0, 1).tolist() == [True, True]
    assert presence.leaves_after_s(np.array([0, 2]), 5.0, 1, np.ones(2)).tolist() == [math.inf] * 2
    assert presence.opens_s(5.0, 1) == 5.0


@pytest.mark.statistical
def test_tosses_are_fair_and_independent_of_the_crowd():
    clients, rounds, p = 400, 200, 0.3
    law = AVAILABILITIES.make({"kind": "bernoulli", "probability": p})
    presence, larger = law.build(clients, Streams(1)), law.build(clients + 5, Streams(1))
    ids = np.arange(clients)
    there = np.array([presence.available(ids, 0.0, r) for r in range(1, rounds + 1)])
    error = math.sqrt(p * (1 - p) / there.size)
    assert there.mean() == pytest.approx(p, abs=5 * error)
    # Neighbouring rounds are independent: the share of clients there in both is p^2.
    assert (there[1:] & there[:-1]).mean() == pytest.approx(p * p, abs=5 * p / math.sqrt(there.size))
    np.testing.assert_array_equal(larger.available(ids, 0.0, 7), there[6])
    assert presence.opens_s(3.0, 4) == 3.0


@pytest.mark.statistical
def test_a_toss_that_shows_nobody_is_repeated_until_somebody_comes():
    """With 3 clients and p = 0.05 a toss shows somebody with q = 1 - 0.95^3: geometric waits, conditional crowds."""
    p, rounds, ids = 0.05, 6000, np.arange(3)
    presence = AVAILABILITIES.make({"kind": "bernoulli", "probability": p, "retry_s": 2.0}).build(3, Streams(2))
    waits = np.array([presence.opens_s(10.0, r) - 10.0 for r in range(1, rounds + 1)])
    crowds = np.array([presence.available(ids, 10.0, r) for r in range(1, rounds + 1)])
    q = 1 - (1 - p) ** 3
    assert crowds.any(axis=1).all()
    tosses = waits / 2.0
    np.testing.assert_array_equal(tosses, np.round(tosses))
    for number in range(4):
        share = q * (1 - q) ** number
        assert (tosses == number).mean() == pytest.approx(share, abs=5 * math.sqrt(share / rounds))
    # Given that anybody is there, each client is with probability p / q, whether the toss was repeated or not.
    for kept in (waits == 0, waits > 0):
        size = kept.sum()
        np.testing.assert_allclose(crowds[kept].mean(axis=0), p / q, atol=5 * math.sqrt(0.25 / size))
        both = p * p / q
        assert (crowds[kept, 0] & crowds[kept, 2]).mean() == pytest.approx(both, abs=5 * math.sqrt(both / size))


@pytest.mark.statistical
def test_markov_sojourns_are_exponential_and_the_start_is_stationary():
    clients, on_s, off_s = 4000, 30.0, 90.0
    presence = Markov(mean_on_s=on_s, mean_off_s=off_s).build(clients, Streams(3))
    ids = np.arange(clients)
    error = math.sqrt(0.25 * 0.75 / clients)
    for time_s in (0.0, 17.0, 5000.0):
        assert presence.available(ids, time_s, 1).mean() == pytest.approx(0.25, abs=5 * error)
    there, left_s = presence.state(ids, 3000.0)  # memoryless: what is left is exponential again
    for state, mean_s in ((there, on_s), (~there, off_s)):
        assert stats.kstest(left_s[state], stats.expon(scale=mean_s).cdf).statistic < dkw(state.sum())
    sojourns = [s for client in range(40) for s in walk(presence, client, 4000.0)]
    for on, mean_s in ((True, on_s), (False, off_s)):
        lengths = [end - start for is_on, start, end in sojourns if is_on == on and start > 0]
        assert len(lengths) > 1000
        # Sojourns are kept if they begin before 4000 s, so that none is left out for being long.
        assert stats.kstest(lengths, stats.expon(scale=mean_s).cdf).statistic < dkw(len(lengths))


@given(st.lists(st.floats(0, 2000), min_size=2, max_size=5), st.integers(0, 5))
@settings(deadline=None, max_examples=25)
def test_answers_do_not_depend_on_what_was_asked_before(times_s, seed):
    for law in (Markov(mean_on_s=7.0, mean_off_s=11.0), Diurnal(), Flash()):
        wandering = law.build(6, Streams(seed))
        for time_s in times_s:
            fresh = law.build(9, Streams(seed))
            some = np.array([4, 0, 5])
            for mine, other in zip(wandering.state(some, time_s), fresh.state(some, time_s), strict=True):
                np.testing.assert_array_equal(mine, other)


@given(st.floats(0, 1e5), st.integers(0, 30))
@settings(deadline=None, max_examples=60)
def test_the_first_arrival_is_the_first_arrival(time_s, seed):
    presence = Markov(mean_on_s=1.0, mean_off_s=200.0).build(3, Streams(seed))
    opens_s = presence.opens_s(time_s, 1)
    ids = np.arange(3)
    assert presence.available(ids, opens_s, 1).any()
    for share in (0.0, 0.3, 0.999):
        before = time_s + share * (opens_s - time_s)
        assert before >= opens_s or not presence.available(ids, before, 1).any()


def test_a_client_is_there_until_it_leaves():
    presence = Markov(mean_on_s=50.0, mean_off_s=50.0).build(200, Streams(4))
    ids = np.arange(200)
    there = np.flatnonzero(presence.available(ids, 10.0, 1))
    leaves_s = presence.leaves_after_s(ids, 10.0, 1, np.ones(200))
    assert np.all((leaves_s > 0) == np.isin(ids, there))
    for client in there[:20]:
        one = np.array([client])
        assert presence.available(one, 10.0 + leaves_s[client] * (1 - 1e-9), 1)[0]
        assert not presence.available(one, 10.0 + leaves_s[client] * (1 + 1e-9), 1)[0]


@pytest.mark.statistical
def test_shares_by_hour_are_those_asked_for():
    """At half past every hour, on the first day and on the third."""
    clients = 20_000
    hours = np.arange(24)
    shares = 0.3 + 0.2 * np.cos(2 * np.pi * (hours - 3) / 24)
    presence = Diurnal(share_by_hour=tuple(shares), mean_session_s=1800.0).build(clients, Streams(5))
    ids = np.arange(clients)
    for day in (0, 2):
        for hour in range(0, 24, 3):
            online = presence.available(ids, 86400.0 * day + 3600.0 * hour + 1800.0, 1).mean()
            share = shares[hour]
            assert online == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / clients))
    there = presence.available(ids, 86400.0, 1)
    left_s = presence.leaves_after_s(ids, 86400.0, 1, np.ones(clients))[there]
    assert stats.kstest(left_s, stats.expon(scale=1800.0).cdf).statistic < dkw(left_s.size)


@pytest.mark.statistical
def test_hours_can_start_anywhere_and_clients_live_in_zones():
    clients = 20_000
    shares = (0.1,) * 12 + (0.8,) * 12
    shifted = Diurnal(share_by_hour=shares, mean_session_s=600.0, start_hour=15.5).build(clients, Streams(6))
    online = shifted.available(np.arange(clients), 0.0, 1).mean()
    assert online == pytest.approx(0.8, abs=5 * math.sqrt(0.16 / clients))
    world = Diurnal(share_by_hour=shares, mean_session_s=600.0, zones_h=24.0).build(clients, Streams(6))
    mean = [world.available(np.arange(clients), time_s, 1).mean() for time_s in (0.0, 30_000.0, 60_000.0)]
    np.testing.assert_allclose(mean, mean[0], atol=7 * math.sqrt(0.25 / clients))


def test_rates_solve_the_balance_of_comings_and_goings():
    """The oracle integrates p' = a (1 - p) - m p numerically over a day."""
    from scipy.integrate import solve_ivp

    shares = 0.2 + 0.1 * np.sin(2 * np.pi * np.arange(24) / 24)
    mean_s = 1500.0
    rates = arrival_rates(shares, mean_s)
    share = shares[0]
    for hour in range(24):
        share = solve_ivp(
            lambda _t, p, a=rates[hour]: a * (1 - p) - p / mean_s, (0, 3600), [share], rtol=1e-10, atol=1e-12
        ).y[0, -1]
        assert share == pytest.approx(shares[(hour + 1) % 24], rel=1e-7)
    with pytest.raises(ValidationError, match=r"falls from 0\.9 to 0\.1"):
        Diurnal(share_by_hour=(0.9,) + (0.1,) * 23, mean_session_s=86400.0)


def test_the_daily_clock_and_its_inverse():
    clock = DailyClock([2.0] * 12 + [0.5] * 12)
    times_s = np.array([0.0, 1800.0, 50_000.0, 86_400.0 * 3 + 12.0])
    np.testing.assert_allclose(clock.instant_s(clock.shows(times_s)), times_s, atol=1e-6)
    # From half past 0 to half past 12 it runs at 2, then at 0.5.
    np.testing.assert_allclose(clock.shows(np.array([1800.0, 5400.0, 1800.0 + 13 * 3600.0])), [0, 7200.0, 88_200.0])
    assert clock.instant_s(np.array([np.inf])).tolist() == [np.inf]


# Facts of the 1,000-user FLASH sample (locked, charging, WiFi).
SESSION_Q = {0.1: 9, 0.25: 11, 0.5: 181, 0.75: 1210, 0.9: 4530, 0.95: 10600}
FRACTION_Q = {0.25: 0.0125, 0.5: 0.0547, 0.75: 0.131, 0.9: 0.255, 0.95: 0.324}


@pytest.mark.statistical
def test_flash_sessions_and_fractions_are_those_of_the_sample():
    clients = 20_000
    presence = Flash().build(clients, Streams(7))
    law = presence._law
    never = law.fraction == 0
    assert never.mean() == pytest.approx(0.29, abs=5 * math.sqrt(0.29 * 0.71 / clients))
    ever = law.fraction[~never]
    # Standard deviation of the fraction in the sample: 0.114.
    assert ever.mean() == pytest.approx(0.095, abs=5 * 0.114 / math.sqrt(ever.size) + 0.001)
    for level, value in FRACTION_Q.items():
        assert (ever <= value).mean() == pytest.approx(level, abs=5 * math.sqrt(level * (1 - level) / ever.size))
    ids = np.flatnonzero(~never)
    number = np.full(ids.size, 3)
    lengths = law.end_s(ids, number, np.ones(ids.size, dtype=bool), np.zeros(ids.size))
    for level, value in SESSION_Q.items():
        assert (lengths <= value).mean() == pytest.approx(level, abs=5 * math.sqrt(level * (1 - level) / ids.size))
    # Second moment of sessions, from the quantiles: standard deviation about 5,600 s.
    assert lengths.mean() == pytest.approx(2054.0, abs=5 * 6000 / math.sqrt(ids.size))


@pytest.mark.statistical
def test_flash_clients_are_online_for_their_share_of_the_time():
    clients = 3000
    presence = Flash().build(clients, Streams(8))
    fraction = presence._law.fraction
    ids = np.arange(clients)
    times_s = np.arange(0, 6 * 86400, 3600.0)
    online = np.array([presence.available(ids, t, 1) for t in times_s])
    per_client = online.mean(axis=0) - fraction
    assert per_client.mean() == pytest.approx(0.0, abs=5 * per_client.std() / math.sqrt(clients))
    assert not online[:, fraction == 0].any()
    by_hour = online.reshape(6, 24, clients)[:, :, fraction > 0].mean(axis=(0, 2))
    assert 1.4 < by_hour.max() / by_hour.min() < 2.4, "2.1 in the sample, smoothed by its long sessions"
    assert 2 <= by_hour.argmax() <= 6


@pytest.mark.statistical
def test_what_is_left_of_a_session_under_way():
    """The oracle is a long renewal process: sojourns laid end to end, met at random instants."""
    law = QuantileLaw([0, 0.5, 1], [1.0, 10.0, 1000.0])
    rng = np.random.default_rng(1)
    u = rng.random(400_000)
    lengths = np.exp(np.interp(u, [0, 0.5, 1], np.log([1.0, 10.0, 1000.0])))
    assert law.mean_s == pytest.approx(lengths.mean(), rel=5 * lengths.std() / lengths.mean() / math.sqrt(u.size))
    ends = np.cumsum(lengths)
    instants = rng.random(20_000) * ends[-1]
    left = ends[np.searchsorted(ends, instants)] - instants
    drawn = law.residual(rng.random(20_000), rng.random(20_000))
    assert stats.ks_2samp(left, drawn).statistic < 2 * dkw(20_000)


@given(st.lists(st.lists(st.integers(0, 50), max_size=9), min_size=1, max_size=6), st.data())
@settings(deadline=None, max_examples=100)
def test_bisection_counts_as_a_slow_scan_does(rows, data):
    rows = [sorted(row) for row in rows]
    bounds = [data.draw(st.integers(-2, 52)) for _ in rows]
    offset = np.cumsum([0, *map(len, rows)])
    values = np.array([value for row in rows for value in row], dtype=float)
    counted = count_until(values, offset[:-1], offset[1:], np.array(bounds, dtype=float))
    assert counted.tolist() == [sum(v <= bound for v in row) for row, bound in zip(rows, bounds, strict=True)]


@pytest.mark.parametrize(
    ("table", "path"),
    [
        ({"kind": "bernoulli", "probability": 0.0}, ("availability", "probability")),
        ({"kind": "markov", "mean_on_s": 1.0}, ("availability", "mean_off_s")),
        ({"kind": "diurnal", "share_by_hour": [0.1] * 23}, ("availability", "share_by_hour")),
        ({"kind": "flash", "never_share": 1.5}, ("availability", "never_share")),
        ("sometimes", ("availability",)),
    ],
)
def test_wrong_settings_are_refused_by_path(table, path):
    with pytest.raises(ValidationError) as caught:
        Devices.model_validate({"availability": table})
    assert caught.value.errors()[0]["loc"] == path


def test_availability_survives_a_round_trip():
    for table in ("always", {"kind": "markov", "mean_on_s": 4, "mean_off_s": 5}, "diurnal", "flash"):
        devices = Devices(availability=table)
        assert Devices.model_validate(devices.model_dump()) == devices
        assert devices.may_lose_clients == (table != "always")
