"""Generators against the samples that their parameters were estimated from, where those lie beside the checkout."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from validation import sample, sessions

from fedsim.devices import COMPUTE_TIMES
from fedsim.devices.availability.diurnal import FLASH_SHARES
from fedsim.devices.availability.flash import Flash
from fedsim.devices.availability.traces import TraceAvailability, Traces
from tests.support.bounds import dkw
from tests.support.media import of_crowd

LATER_S = (600, 3600, 10_800, 21_600, 86_400)
FOLDER = Path(__file__).parents[4] / "shared" / "data" / "fedscale"

pytestmark = [pytest.mark.data, pytest.mark.skipif(not FOLDER.is_dir(), reason="../shared/data/fedscale is not there")]


@pytest.fixture(scope="module")
def flash(tmp_path_factory):
    """Return the users of the sample who are ever eligible, read from a file of the documented form."""
    with np.load(FOLDER / "flash_availability_1000.npz") as data:
        owner = np.repeat(np.arange(data["user"].size), np.diff(data["offset"]))
        start_s = data["ready_start_s"] - data["trace_start_s"][owner]
        end_s = data["ready_end_s"] - data["trace_start_s"][owner]
        period_s = np.where(data["valid"], data["trace_end_s"] - data["trace_start_s"], 86400.0)
        valid, hour = data["valid"], (data["trace_start_s"] % 86400) / 3600
        file = tmp_path_factory.mktemp("flash") / "flash.npz"
        np.savez(file, offset=data["offset"], start_s=start_s, end_s=end_s, period_s=period_s)
    return Traces(path=str(file)).intervals()[0], valid, hour


def test_the_sample_says_what_the_facts_say(flash):
    intervals, valid, _ = flash
    assert valid.sum() == 710
    owner = np.repeat(np.arange(intervals.devices), np.diff(intervals.offset))
    fraction = np.bincount(owner, intervals.end_s - intervals.start_s, minlength=intervals.devices) / intervals.period_s
    assert not fraction[~valid].any()
    assert fraction[valid].mean() == pytest.approx(0.095, abs=0.0005)
    np.testing.assert_allclose(
        np.quantile(fraction[valid], [0.25, 0.5, 0.75, 0.95]), [0.0125, 0.0547, 0.131, 0.324], rtol=0.02
    )
    length = intervals.end_s - intervals.start_s
    assert length.size == pytest.approx(13_295, rel=0.02), "touching sessions are one"
    np.testing.assert_allclose(np.quantile(length, [0.5, 0.75, 0.95]), [181, 1210, 10600], rtol=0.05)


def test_the_share_online_by_hour_by_bisection_is_the_published_one(flash):
    """Every minute of each user's own days, by local hour."""
    intervals, valid, start_hour = flash
    users = np.flatnonzero(valid)
    presence = TraceAvailability(intervals, users)
    whole_days = int(intervals.period_s[users].min() // 86400)
    assert whole_days >= 1
    online, asked = np.zeros(24), np.zeros(24)
    for time_s in np.arange(0.0, 6 * 86400.0, 600.0):
        covered = time_s < intervals.period_s[users]
        there = presence.available(np.arange(users.size), time_s, 1)
        hour = ((start_hour[users] + time_s / 3600) % 24).astype(int)
        np.add.at(online, hour[covered], there[covered])
        np.add.at(asked, hour[covered], 1)
    # The facts weigh users alike; users with long traces weigh more here.
    assert np.corrcoef(online / asked, FLASH_SHARES)[0, 1] > 0.95
    assert (online.sum() / asked.sum()) == pytest.approx(0.095, abs=0.01)


def as_seen(intervals, valid, hour):
    """Return the sample's users who are ever eligible as the validation sees generated ones."""
    users = np.flatnonzero(valid)
    owner = np.repeat(np.arange(intervals.devices), np.diff(intervals.offset))
    place = np.searchsorted(users, owner)
    return sample.Seen(place, intervals.start_s, intervals.end_s, intervals.period_s[users], 3600 * hour[users])


def test_the_statistics_of_the_sample_are_the_published_ones(flash):
    """The facts that the generator is fitted to, measured once more: equal up to their rounding.

    The published first quantile of sessions per day is that of another interpolation, and the spread of users' means
    counts other users; the published shares online later are those at some thousand random instants.
    """
    found = sessions.statistics(as_seen(*flash))
    loose = {"sessions per day, 5% quantile": 0.06, "session, sd of users' mean logarithms": 0.03}
    for name, fact in sample.FACTS.items():
        if name == "share of users never seen":
            continue
        later = 0.02 if name.startswith("online, online") else 0.002
        assert found[name] == pytest.approx(fact, rel=0.03, abs=loose.get(name, later)), name


def test_the_shares_online_later_are_those_of_a_look_at_every_minute(flash):
    """Of the minutes online whose later instant lies in the user's window, in how many the user is online again."""
    seen = as_seen(*flash)
    again, asked = dict.fromkeys(LATER_S, 0), dict.fromkeys(LATER_S, 0)
    for user, span_s in enumerate(seen.span_s):
        own = seen.owner == user
        middle_s = np.arange(30.0, span_s, 60.0)
        begun, over = (np.searchsorted(times_s[own], middle_s, side="right") for times_s in (seen.start_s, seen.end_s))
        online = begun > over
        for later_s in LATER_S:
            apart = later_s // 60
            again[later_s] += np.sum(online[:-apart] & online[apart:])
            asked[later_s] += np.sum(online[:-apart])
    found = sessions.statistics(seen)
    for later_s in LATER_S:
        share = again[later_s] / asked[later_s]
        assert found[f"online, online {later_s} s later"] == pytest.approx(share, abs=0.0015)


@pytest.mark.slow
@pytest.mark.statistical
def test_generated_crowds_differ_from_the_sample_little_more_than_halves_of_it_from_each_other(flash):
    """Kolmogorov-Smirnov distances; the largest of 20 random halves of the sample are 0.046, 0.047, 0.066 and 0.063.

    The generator is fitted to quantiles and correlations, and not to these distances: a fifth more is allowed for each.
    """
    distances = [
        stats.ks_2samp(generated, measured).statistic
        for generated, measured in zip(
            laws_of(sample.watch(of_crowd(Flash(), 20_000, 1), 20_000, 1)),
            laws_of(as_seen(*flash)),
            strict=True,
        )
    ]
    assert np.all(np.array(distances) < 1.2 * np.array([0.046, 0.047, 0.066, 0.063])), distances


def laws_of(seen):
    """Return sessions and gaps in whole seconds, as the sample has them, shares of time and sessions per day."""
    users, length_s = seen.span_s.size, seen.end_s - seen.start_s
    number = np.bincount(seen.owner, minlength=users)
    gap_s = (seen.start_s[1:] - seen.end_s[:-1])[seen.owner[1:] == seen.owner[:-1]]
    share = np.bincount(seen.owner, length_s, users) / seen.span_s
    return np.ceil(length_s), np.ceil(gap_s), share[number > 0], (number / seen.span_s)[number > 0]


@pytest.mark.statistical
def test_the_law_of_phones_against_the_sample():
    with (FOLDER / "device_training_latency_ms.csv").open() as file:
        measured = np.array([float(row["resnet_ms"]) for row in csv.DictReader(file) if float(row["resnet_ms"]) > 0])
    assert measured.size == 978
    law = of_crowd(COMPUTE_TIMES.make({"kind": "fedscale", "law": "phones"}), 20_000, 2)
    drawn = law.expected_s(np.ones(20_000)) * 1000 / 3
    assert stats.ks_2samp(drawn, measured).statistic < dkw(measured.size) / 2, "a log-normal law is beyond it"
