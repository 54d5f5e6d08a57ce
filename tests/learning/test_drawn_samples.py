"""Samples that clients draw: independent, as probable as asked, and a function of client and participation."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.learning import Drawn, SampleDraws
from fedsim.streams import Streams

SIZES = np.array([5, 0, 1, 300, 40])


@given(st.integers(0, 10**6), st.floats(0.001, 1.0), st.integers(0, 2**31 - 1), st.permutations(range(5)))
def test_counts_are_those_of_the_places_whatever_clients_are_asked_together(seed, probability, number, order):
    draws, client = SampleDraws(Streams(seed), SIZES), np.array(order[:3])
    counts, places = draws.counts(client, probability, number), draws.places(client, probability, number)
    assert counts.tolist() == [len(part) for part in places]
    for one, part in zip(client, places, strict=True):
        (alone,) = draws.places(np.array([one]), probability, number)
        np.testing.assert_array_equal(part, alone)
        assert np.all(np.diff(part) > 0)
        assert not part.size or (part[0] >= 0 and part[-1] < SIZES[one])


def test_all_are_drawn_with_certainty_and_more_with_a_higher_probability():
    draws, everyone = SampleDraws(Streams(1), SIZES), np.arange(5)
    assert draws.counts(everyone, 1.0, 3).tolist() == SIZES.tolist()
    few, many = (draws.places(everyone, p, 3) for p in (0.2, 0.6))
    assert all(set(one) <= set(other) for one, other in zip(few, many, strict=True))
    assert draws.counts(everyone, 0.2, 3).sum() < draws.counts(everyone, 0.6, 3).sum()


@pytest.mark.statistical
def test_each_sample_is_drawn_as_often_and_independently():
    """900 participations of 40 samples: shares and products of pairs within five standard deviations of theirs."""
    draws, times = SampleDraws(Streams(0), np.array([40])), 900
    drawn = np.zeros((times, 40))
    for number in range(times):
        (places,) = draws.places(np.array([0]), 0.3, number)
        drawn[number, places] = 1.0
    assert np.abs(drawn.mean(axis=0) - 0.3).max() < 5 * np.sqrt(0.21 / times)
    pairs = (drawn.T @ drawn / times)[~np.eye(40, dtype=bool)]
    assert np.abs(pairs - 0.09).max() < 5 * np.sqrt(0.09 * 0.91 / times)


def test_a_draw_knows_what_its_update_is_multiplied_by():
    drawn = Drawn(0.5, 7, np.array([4, 0]), 8.0)
    assert [one.scale for one in drawn.each()] == [0.5, 0.0]
    assert [one.scale for one in drawn._replace(divisor=None).each()] == [1.0, 1.0]
    assert drawn.part(np.array([1])).taken.tolist() == [0]
    assert drawn.named != drawn._replace(number=8).named
