"""The generator fitted to FLASH: every published statistic of the sample, seen as the sample was seen."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from validation import sample, sessions

from fedsim.devices.availability.flash import FITTED, Flash, FlashSojourns, QuantileLaw, hourly_rates
from fedsim.streams import Streams
from tests.support.bounds import dkw
from tests.support.media import of_crowd

DAY_S = 86400.0

# Two standard errors of the published sample, from 200 bootstrap resamples over its 710 users, relative to the
# value or, where said, absolute; never less than what 24,000 generated clients can tell.
RELATIVE = {
    **dict.fromkeys(("session in s, 25% quantile", "session in s, 50% quantile"), 0.2),
    **dict.fromkeys(("session in s, 75% quantile", "session in s, 90% quantile", "session in s, 95% quantile"), 0.14),
    "session in s, 99% quantile": 0.08,
    "session in s, mean": 0.1,
    "gap in s, 25% quantile": 0.4,
    "gap in s, 50% quantile": 0.26,
    "gap in s, 75% quantile": 0.22,
    "gap in s, 90% quantile": 0.15,
    "gap in s, 95% quantile": 0.08,
    "gap in s, 99% quantile": 0.08,
    "gap in s, mean": 0.08,
    "sessions per day, 5% quantile": 0.4,
    # Beyond two standard errors: 0.8 sessions a day where the sample has 1.0.
    "sessions per day, 25% quantile": 0.26,
    **dict.fromkeys(("sessions per day, 50% quantile", "sessions per day, 95% quantile"), 0.18),
    **dict.fromkeys(("sessions per day, 75% quantile", "sessions per day, mean"), 0.09),
}
ABSOLUTE = {
    "share of users never seen": 0.03,
    "session, sd of the logarithm": 0.07,
    "session, sd of users' mean logarithms": 0.1,
    "share of time online, 25% quantile": 0.004,
    "share of time online, 50% quantile": 0.01,
    "share of time online, 75% quantile": 0.016,
    "share of time online, 90% quantile": 0.028,
    "share of time online, 95% quantile": 0.036,
    "share of time online, 99% quantile": 0.06,
    "share of time online, mean": 0.009,
    "sessions per day and share online, correlation": 0.08,
    **dict(zip(sessions.CORRELATIONS, (0.06, 0.06, 0.045, 0.05, 0.06), strict=True)),
    **dict.fromkeys((f"online, still in the session after {s} s" for s in (60, 100, 300)), 0.01),
    **{f"online, still in the session after {s} s": 2 * e for s, e in ((600, 0.007), (1800, 0.012), (3600, 0.014))},
    **{f"online, online {s} s later": 2 * e for s, e in ((600, 0.006), (21_600, 0.017), (86_400, 0.019))},
    # Beyond two standard errors: clients come back within hours a little more often than the users did.
    "online, online 3600 s later": 0.035,
    "online, online 10800 s later": 0.045,
    **{f"share online at {hour} h": 2 * e for hour, e in enumerate([0.008] * 10 + [0.006] * 12 + [0.007, 0.008])},
    # The sample has a peak of one hour, which two waves a day do not follow.
    "share online at 18 h": 0.018,
    "share online, largest hour over smallest": 0.34,
}


@pytest.fixture(scope="module")
def seen():
    clients = 24_000
    return sample.watch(of_crowd(Flash(), clients, 7), clients, 7)


@pytest.fixture(scope="module")
def found(seen):
    return sessions.statistics(seen)


def test_every_published_statistic_has_a_tolerance():
    assert RELATIVE.keys() | ABSOLUTE.keys() == sample.FACTS.keys()


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", sample.FACTS)
def test_what_is_published_of_the_sample(found, name):
    fact = sample.FACTS[name]
    assert found[name] == pytest.approx(fact, rel=RELATIVE.get(name, 0.0), abs=ABSOLUTE.get(name, 0.0))


@pytest.mark.slow
@pytest.mark.statistical
def test_it_goes_on_like_that():
    """A fortnight later the clients' share of time online is the same, and no client's comings have changed."""
    clients = 6000
    law = of_crowd(Flash(), clients, 3)
    ids, day_s = np.arange(clients), np.full(clients, DAY_S)
    share = []
    for day in (0, 14):
        sessions = law.sessions(ids, day * day_s, (day + 2) * day_s)
        share.append(np.bincount(sessions.owner, sessions.end_s - sessions.start_s, clients) / (2 * DAY_S))
    change = share[1] - share[0]
    assert change.mean() == pytest.approx(0.0, abs=4 * change.std() / math.sqrt(clients))
    never = np.array(share).sum(axis=0) == 0
    assert 0.25 < never.mean() < 0.35


@pytest.mark.slow
@pytest.mark.statistical
def test_without_hours_no_client_follows_them():
    """The share online is then the same at every hour; sessions stay about as long."""
    clients = 24_000
    free = sessions.statistics(sample.watch(of_crowd(Flash(diurnal=False), clients, 7), clients, 7))
    assert free["share online, largest hour over smallest"] < 1.15
    assert free["session in s, 90% quantile"] == pytest.approx(sample.FACTS["session in s, 90% quantile"], rel=0.2)
    assert free["share of time online, mean"] == pytest.approx(0.084, abs=0.004)


def test_never_is_never():
    law = of_crowd(Flash(never_share=1.0), 50, 2)
    assert law.next_s(0.0, 1)[0] == math.inf
    assert not law.sessions(np.arange(50), np.zeros(50), np.full(50, 8 * DAY_S)).owner.size
    ever = of_crowd(Flash(never_share=0.0), 50, 2)
    assert np.unique(ever.sessions(np.arange(50), np.zeros(50), np.full(50, 8 * DAY_S)).owner).size > 45


def test_hours_turn_with_the_habit():
    """A client whose habit is six hours later has its own part of the day six hours later; common hours stay."""
    sessions, gaps = hourly_rates()
    np.testing.assert_allclose(sessions.mean(axis=1), 1.0)
    np.testing.assert_allclose(gaps.mean(axis=1), 1.0)
    ratio = np.log(sessions[6] / sessions[0])
    centred = ratio - ratio.mean()
    hour = np.arange(24) + 1.0
    swing, late = FITTED.sessions_slow[0]
    expected = -swing * (np.cos(2 * np.pi * (hour - late - 6) / 24) - np.cos(2 * np.pi * (hour - late) / 24))
    np.testing.assert_allclose(centred, expected, atol=1e-12)


LEVELS, VALUES_S = [0, 0.3, 0.5, 1], [1.0, 10.0, 10.0, 1000.0]


@pytest.mark.statistical
def test_quantiles_over_all_clients_and_of_one():
    """Centres and scores that are standard normal together give the quantiles; a client's own mean is its law's."""
    rng, number, within = np.random.default_rng(1), 400_000, 0.8
    law = QuantileLaw(LEVELS, VALUES_S, within)
    centre = 0.6 * rng.standard_normal(number)
    times = law.time_s(centre + within * rng.standard_normal(number))
    for level, value in ((0.15, math.sqrt(10)), (0.29, 9.2612), (0.75, 100.0)):
        assert (times <= value).mean() == pytest.approx(level, abs=5 * math.sqrt(0.25 / number))
    assert np.isclose(times, 10.0).mean() == pytest.approx(0.2, abs=5 * math.sqrt(0.16 / number)), (
        "a fifth lies at 10 s"
    )
    fine = QuantileLaw(np.linspace(0, 1, 81), np.geomspace(1.0, 1000.0, 81), within)
    for mine in (-1.0, 0.7):
        own = fine.time_s(mine + within * rng.standard_normal(number))
        # Within one of 80 pieces a client's times are taken as log-uniform, which they are nearly.
        assert fine.mean_s(np.array([mine]))[0] == pytest.approx(own.mean(), rel=0.02)


@pytest.mark.statistical
def test_what_is_left_of_a_session_under_way():
    """The oracle is a long renewal process: sojourns laid end to end, met at random instants."""
    rng = np.random.default_rng(1)
    law = QuantileLaw([0, 0.5, 1], [100.0, 1000.0, 2000.0], 1e6)  # so wide that the middle level is all that counts
    chosen, place = rng.random(400_000) < 0.5, rng.random(400_000)
    edge = np.where(chosen, 100.0, 1000.0), np.where(chosen, 1000.0, 2000.0)
    lengths = edge[0] * (edge[1] / edge[0]) ** place
    assert law.mean_s(np.zeros(1))[0] == pytest.approx(lengths.mean(), rel=5 * lengths.std() / lengths.mean() / 632)
    ends = np.cumsum(lengths)
    instants = rng.random(20_000) * ends[-1]
    left = ends[np.searchsorted(ends, instants)] - instants
    drawn = law.residual_s(np.zeros(20_000), rng.random(20_000), rng.random(20_000))
    assert stats.ks_2samp(left, drawn).statistic < 2 * dkw(20_000), "for two samples"


@given(st.lists(st.floats(-4, 4), min_size=1, max_size=30), st.data())
def test_what_is_left_is_no_longer_than_the_longest(centres, data):
    law = QuantileLaw(LEVELS, VALUES_S, 0.5)
    number = len(centres)
    uniform = st.lists(st.floats(1e-9, 1 - 1e-9), min_size=number, max_size=number)
    u, v = (np.array(data.draw(uniform)) for _ in range(2))
    left_s = law.residual_s(np.array(centres), u, v)
    assert np.all((left_s > 0) & (left_s < 1000.0))
    assert np.all(law.residual_s(np.array(centres), np.minimum(u + 0.1, 1 - 1e-9), v) >= left_s)


@pytest.mark.statistical
@pytest.mark.parametrize("never_share", [0.0, 0.5])
def test_the_warm_up_begins_with_the_stationary_share(never_share):
    """A client is online with the probability of its mean session over that of its session and gap together."""
    clients = 20_000
    law = FlashSojourns(Flash(never_share=never_share), clients, Streams(11))
    session_s, gap_s = law._session.mean_s(law._session_centre), law._gap.mean_s(law._gap_centre)
    share = (1 - never_share) * session_s / (session_s + gap_s)
    found = law.starts_on(np.arange(clients))
    assert found.sum() == pytest.approx(share.sum(), abs=5 * math.sqrt((share * (1 - share)).sum()))
