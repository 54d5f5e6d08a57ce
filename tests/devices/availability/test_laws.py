"""Laws of availability: always, Bernoulli, on and off chains and the hours of the day."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError
from scipy import stats

from fedsim.arrays import count_until
from fedsim.devices import AVAILABILITIES
from fedsim.devices.availability import on_off
from fedsim.devices.availability.diurnal import DailyClocks, Diurnal, arrival_rates
from fedsim.devices.availability.flash import Flash
from fedsim.devices.availability.on_off import Markov
from fedsim.errors import ScenarioError
from fedsim.streams import Streams
from tests.support.bounds import dkw
from tests.support.media import of_crowd


def walk(availability, client, until_s):
    """Return the sojourns of one client until an instant, by going from change to change."""
    time_s, sojourns = 0.0, []
    one = np.array([client])
    while time_s < until_s:
        on, left_s = availability.state(one, time_s)
        sojourns.append((bool(on[0]), time_s, time_s + float(left_s[0])))
        time_s = float(np.nextafter(time_s + left_s[0], np.inf))
    return sojourns


def test_always():
    availability = of_crowd(AVAILABILITIES.make("always"), 3)
    assert availability.available(np.array([0, 2]), 5.0, 1).tolist() == [True, True]
    assert availability.leaves_after_s(np.array([0, 2]), 5.0, 1, np.ones(2)).tolist() == [math.inf] * 2
    assert availability.next_s(5.0, 1)[0] == 5.0


@pytest.mark.statistical
def test_draws_are_fair_and_independent_of_the_crowd():
    clients, rounds, p = 400, 200, 0.3
    law = AVAILABILITIES.make({"kind": "bernoulli", "probability": p})
    availability, larger = of_crowd(law, clients, 1), of_crowd(law, clients + 5, 1)
    ids = np.arange(clients)
    there = np.array([availability.available(ids, 0.0, r) for r in range(1, rounds + 1)])
    error = math.sqrt(p * (1 - p) / there.size)
    assert there.mean() == pytest.approx(p, abs=5 * error)
    # Neighbouring rounds are independent: the share of clients there in both is p^2.
    assert (there[1:] & there[:-1]).mean() == pytest.approx(p * p, abs=5 * p / math.sqrt(there.size))
    np.testing.assert_array_equal(larger.available(ids, 0.0, 7), there[6])
    assert availability.next_s(3.0, 4)[0] == 3.0


@pytest.mark.statistical
def test_markov_sojourns_are_exponential_and_the_start_is_stationary():
    clients, on_s, off_s = 4000, 30.0, 90.0
    availability = of_crowd(Markov(mean_on_s=on_s, mean_off_s=off_s), clients, 3)
    ids = np.arange(clients)
    error = math.sqrt(0.25 * 0.75 / clients)
    for time_s in (0.0, 17.0, 5000.0):
        assert availability.available(ids, time_s, 1).mean() == pytest.approx(0.25, abs=5 * error)
    there, left_s = availability.state(ids, 3000.0)  # memoryless: what is left is exponential again
    for state, mean_s in ((there, on_s), (~there, off_s)):
        assert stats.kstest(left_s[state], stats.expon(scale=mean_s).cdf).statistic < dkw(state.sum())
    sojourns = [s for client in range(40) for s in walk(availability, client, 4000.0)]
    for on, mean_s in ((True, on_s), (False, off_s)):
        lengths = [end - start for is_on, start, end in sojourns if is_on == on and start > 0]
        assert len(lengths) > 1000
        # Sojourns are kept if they begin before 4000 s, so that none is left out for being long.
        assert stats.kstest(lengths, stats.expon(scale=mean_s).cdf).statistic < dkw(len(lengths))


@given(st.lists(st.floats(0, 2000), min_size=2, max_size=5), st.integers(0, 5))
@settings(max_examples=4)
def test_answers_do_not_depend_on_what_was_asked_before(times_s, seed):
    for law in (Markov(mean_on_s=7.0, mean_off_s=11.0), Diurnal(), Flash()):
        wandering = of_crowd(law, 6, seed)
        for time_s in times_s:
            fresh = of_crowd(law, 9, seed)
            some = np.array([4, 0, 5])
            for mine, other in zip(wandering.state(some, time_s), fresh.state(some, time_s), strict=True):
                np.testing.assert_array_equal(mine, other)


@given(st.floats(0, 1e5), st.integers(0, 30))
def test_the_first_arrival_is_the_first_arrival(time_s, seed):
    availability = of_crowd(Markov(mean_on_s=1.0, mean_off_s=200.0), 3, seed)
    opens_s = availability.next_s(time_s, 1)[0]
    ids = np.arange(3)
    assert availability.available(ids, opens_s, 1).any()
    for share in (0.0, 0.3, 0.999):
        before = time_s + share * (opens_s - time_s)
        assert before >= opens_s or not availability.available(ids, before, 1).any()


def test_a_client_is_there_until_it_leaves():
    availability = of_crowd(Markov(mean_on_s=50.0, mean_off_s=50.0), 200, 4)
    ids = np.arange(200)
    there = np.flatnonzero(availability.available(ids, 10.0, 1))
    leaves_s = availability.leaves_after_s(ids, 10.0, 1, np.ones(200))
    assert np.all((leaves_s > 0) == np.isin(ids, there))
    for client in there[:20]:
        one = np.array([client])
        assert availability.available(one, 10.0 + leaves_s[client] * (1 - 1e-9), 1)[0]
        assert not availability.available(one, 10.0 + leaves_s[client] * (1 + 1e-9), 1)[0]


@pytest.mark.statistical
def test_shares_by_hour_are_those_asked_for():
    """At half past every hour, on the first day and on the third."""
    clients = 5_000
    hours = np.arange(24)
    shares = 0.3 + 0.2 * np.cos(2 * np.pi * (hours - 3) / 24)
    availability = of_crowd(Diurnal(share_by_hour=tuple(shares), mean_session_s=1800.0), clients, 5)
    ids = np.arange(clients)
    for day in (0, 2):
        for hour in range(0, 24, 3):
            online = availability.available(ids, 86400.0 * day + 3600.0 * hour + 1800.0, 1).mean()
            share = shares[hour]
            assert online == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / clients))
    there = availability.available(ids, 86400.0, 1)
    left_s = availability.leaves_after_s(ids, 86400.0, 1, np.ones(clients))[there]
    assert stats.kstest(left_s, stats.expon(scale=1800.0).cdf).statistic < dkw(left_s.size)


@pytest.mark.statistical
def test_clients_live_in_zones():
    clients = 5_000
    shares = (0.1,) * 12 + (0.8,) * 12
    world = of_crowd(Diurnal(share_by_hour=shares, mean_session_s=600.0, zones_h=24.0), clients, 6)
    mean = [world.available(np.arange(clients), time_s, 1).mean() for time_s in (0.0, 30_000.0, 60_000.0)]
    np.testing.assert_allclose(mean, mean[0], atol=7 * math.sqrt(0.25 / clients))


@pytest.mark.statistical
@pytest.mark.parametrize(("hour", "share"), [(5, 0.25), (0, 0.0), (20, 1.0), (23, 0.3)])
def test_a_run_that_begins_at_half_past_an_hour_begins_with_its_share(hour, share):
    """Sessions of a minute let the share change between any two hours; half past is where a share is given."""
    shares = np.full(24, 0.5)
    shares[hour] = 0.01 + 0.98 * share
    law = Diurnal(share_by_hour=tuple(shares), mean_session_s=60.0, start_hour=hour + 0.5)
    there = of_crowd(law, 20_000, 1).available(np.arange(20_000), 0.0, 1)
    assert there.mean() == pytest.approx(shares[hour], abs=5 * math.sqrt(0.25 / 20_000))


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


PACES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]) | st.floats(0.05, 3.0), min_size=24, max_size=24).filter(any)


@given(st.lists(PACES, min_size=1, max_size=2), st.integers(-800, 8000), st.floats(0, 30), st.floats(0, 1))
def test_daily_clocks_go_at_the_pace_of_each_hour_from_half_past_to_half_past(paces, quarter, hours, share):
    clocks, clock, now = DailyClocks(paces), len(paces) - 1, quarter / 4 + share / 8
    pace_of = paces[clock]
    left = hours * sum(pace_of) / 24 + 0.0137
    found_s = clocks.later_s(np.array([clock]), np.array([3600.0 * now]), np.array([3600.0 * left]))[0]
    while left > 0:
        pace, length = pace_of[math.floor(now - 0.5) % 24], math.floor(now + 0.5) + 0.5 - now
        if left <= pace * length:
            now, left = now + left / pace, 0.0
        else:
            now, left = now + length, left - pace * length
    assert found_s == pytest.approx(3600.0 * now, abs=1e-5)
    for time_s, advance_s in ((5.0, math.inf), (math.inf, 5.0)):
        assert clocks.later_s(np.array([clock]), np.array([time_s]), np.array([advance_s]))[0] == math.inf


@pytest.mark.parametrize(
    "law", [Markov(mean_on_s=700.0, mean_off_s=1100.0), Diurnal(), Flash()], ids=lambda law: type(law).__name__
)
def test_sessions_of_a_window_are_those_that_one_meets_in_it(law):
    clients, from_s, until_s = np.array([7, 3, 21, 22]), 9_000.0, 400_000.0
    found = of_crowd(law, 30, 12).sessions(clients, np.full(4, from_s), np.full(4, until_s))
    for place, client in enumerate(clients):
        met = [(a, b) for on, a, b in walk(of_crowd(law, 30, 12), client, until_s) if on and b > from_s and a < until_s]
        mine = found.owner == place
        np.testing.assert_allclose(found.start_s[mine], [max(a, from_s) for a, _ in met], rtol=1e-9)
        np.testing.assert_allclose(found.end_s[mine], [min(b, until_s) for _, b in met], rtol=1e-9)
    assert found.owner.size > 0
    assert np.all(np.diff(found.owner) >= 0)


@given(st.lists(st.lists(st.integers(0, 50), max_size=9), min_size=1, max_size=6), st.data())
def test_bisection_counts_as_a_slow_scan_does(rows, data):
    rows = [sorted(row) for row in rows]
    bounds = [data.draw(st.integers(-2, 52)) for _ in rows]
    offset = np.cumsum([0, *map(len, rows)])
    values = np.array([value for row in rows for value in row], dtype=float)
    counted = count_until(values, offset[:-1], offset[1:], np.array(bounds, dtype=float))
    assert counted.tolist() == [sum(v <= bound for v in row) for row, bound in zip(rows, bounds, strict=True)]


def test_a_look_far_ahead_of_short_sojourns_is_refused(monkeypatch):
    """In 10^6 s there are a million changes of a mean of 1 s; 160 are drawn, and the next look is as far as before."""
    monkeypatch.setattr(on_off, "MOST_SOJOURNS", 160)
    law = of_crowd(Markov(mean_on_s=1.0, mean_off_s=1.0), 3)
    law.state(np.arange(3), 100.0)
    with pytest.raises(ScenarioError, match=r"client 0 would go on and off more than 160 times .* at 1e\+06 s"):
        law.state(np.arange(3), 1e6)


def test_the_first_sojourn_begins_at_time_0():
    """Its end is the exponential number of the stream's first draw."""
    law, ids = Markov(mean_on_s=3.0, mean_off_s=3.0), np.arange(50)
    drawn_s = -3.0 * np.log1p(-Streams(4).uniform("availability-sojourn", ids, 0))
    np.testing.assert_allclose(of_crowd(law, 50, 4).state(ids, 0.0)[1], drawn_s)
