"""Age-based scheduling, by hand."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.selectors.channel.age import AgeBased, benefit_of, within
from tests.support.views import reports_of, rng, view_of

# With 1e6 bits in 1 s: 2.5e5 Hz at 4 bit/s/Hz (SNR 15), 5e5 Hz at 2 (SNR 3), 1e6 Hz at 1 (SNR 1).
RADIO = {"snr_hz": [15 * 2.5e5, 3 * 5e5, 1e6], "up_bits": 1e6, "allocates": True}


def aged(selector, rounds):
    """Let updates of clients 0, 1, 2 have arrived in these rounds, 0 for never."""
    selector.select(view_of(3), rng())
    for client, number in enumerate(rounds):
        if number:
            selector.observe(reports_of([client], number=number))
    return selector


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_ages_follow_the_recursion_of_the_paper(rounds):
    selector, age = aged(AgeBased(2), [0, 0, 0]), np.zeros(3, dtype=int)
    for number, arrived in enumerate(rounds, start=1):
        delivered = np.array([*arrived, False])
        selector.observe(reports_of([0, 1, 2], number=number, delivered=delivered))
        age = (age + 1) * (1 - delivered)
        assert selector.ages(view_of([1, 2], clients=3, round=number + 1)).tolist() == age[1:].tolist()


@pytest.mark.parametrize(
    ("alpha", "expected"), [(0.0, [1, 2, 5]), (1.0, np.log([2, 3, 6])), (2.0, [1 - 1 / 2, 1 - 1 / 3, 1 - 1 / 6])]
)
def test_benefits_by_hand(alpha, expected):
    np.testing.assert_allclose(benefit_of(np.array([0, 1, 4]), alpha), expected)


def test_clients_are_taken_by_benefit_per_hz_until_the_band_is_used_up():
    # Ages 0, 1, 3: ln 2, ln 3, ln 5 over 0.25, 0.5, 1 MHz are 2.77, 2.20, 1.61; the third does not fit into 1.5 MHz.
    cohort = aged(AgeBased(3, bandwidth_hz=1.5e6), [3, 2, 0]).select(view_of(3, round=4, **RADIO), rng())
    assert cohort.client.tolist() == [0, 1]
    np.testing.assert_allclose(cohort.allocation.bandwidth_hz, [5e5, 1e6], rtol=1e-9)


def test_one_that_does_not_fit_is_passed_over_and_at_least_one_is_taken():
    selector = aged(AgeBased(3, bandwidth_hz=0.6e6, alpha=0.0), [3, 3, 0])
    # Ages 0, 0, 6: benefits 1, 1, 7 over 0.25, 0.5, 1 MHz; only the first fits beside nothing else.
    assert selector.select(view_of(3, round=7, **RADIO), rng()).client.tolist() == [0]
    cohort = AgeBased(3, bandwidth_hz=1e5).select(view_of(3, **RADIO), rng())
    assert cohort.client.size == 1
    assert cohort.allocation.bandwidth_hz.tolist() == [1e5]
    assert within(np.array([3.0, 1.0, 1.0]), 2.5, 1, np.array([7, 8, 9])).tolist() == [8]


def test_where_no_bands_are_given_the_price_is_the_time_of_an_upload():
    shared = {**RADIO, "allocates": False}
    cohort = aged(AgeBased(1, bandwidth_hz=1e6), [3, 3, 3]).select(view_of(3, round=4, **shared), rng())
    assert (cohort.client.tolist(), cohort.allocation) == ([0], None)
    cohort = aged(AgeBased(1), [3, 2, 0]).select(view_of(3, round=4), rng())
    assert (cohort.client.tolist(), cohort.allocation) == ([2], None)


def test_dead_and_perfect_channels_have_no_and_every_chance():
    radio = {**RADIO, "snr_hz": [0.0, np.inf, 1e6]}
    assert AgeBased(1).select(view_of(3, **radio), rng()).client.tolist() == [1]
    assert AgeBased(3, bandwidth_hz=2e6).select(view_of(3, **radio), rng()).client.tolist() == [1, 2]
    dead = {**RADIO, "snr_hz": [0.0, 0.0, 0.0]}
    assert AgeBased(2, bandwidth_hz=2e6).select(view_of(3, **dead), rng()).allocation.bandwidth_hz.tolist() == [2e6]
