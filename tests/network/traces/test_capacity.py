"""Capacities over time, against closed forms and a plain loop over the pieces."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.network.traces.capacity import Capacities

# 10 bit/s for 2 s, nothing for 1 s, 30 bit/s for 1 s: 50 bits in 4 s.
STEPS = (np.array([0.0, 2.0, 3.0, 4.0]), np.array([10.0, 0.0, 30.0]))
FLAT = (np.array([0.0, 7.0]), np.array([5.0]))


def took(capacities, start_s, bits, trace=0):
    return capacities.transfer_s(np.array([trace]), np.array([float(start_s)]), bits).item()


@pytest.mark.parametrize(
    ("start_s", "bits", "seconds"),
    [
        (0.0, 0.0, 0.0),
        (0.0, 15.0, 1.5),
        (0.0, 20.0, 2.0),  # the last bit arrives before the outage
        (0.0, 20.3, 3.01),
        (1.0, 25.0, 2.5),
        (2.5, 30.0, 1.5),
        (2.0, 1.0, 1.0 + 1 / 30),
        (3.5, 15.0, 0.5),  # ends with the period
        (3.5, 16.0, 0.6),
        (0.0, 50.0, 4.0),
        (0.0, 100.0, 8.0),
        (1.0, 5_000_005.0, 400_000.0 + 0.5),
        (4e6 + 1.0, 25.0, 2.5),
    ],
)
def test_a_transfer_ends_where_the_capacity_has_carried_its_bits(start_s, bits, seconds):
    """By hand."""
    assert took(Capacities.of([FLAT, STEPS]), start_s, bits, trace=1) == pytest.approx(seconds, abs=1e-8)


def test_the_seconds_of_a_trace_have_all_their_digits_beside_one_that_holds():
    """Until 1.5 s, 1.2 s with a rate; the trace before it goes on to the end of time."""
    steps = np.array([0.0, 0.7, 1.0, 2.0]), STEPS[1]
    seconds = Capacities.of([FLAT, steps], "hold").between_s(np.array([1]), np.zeros(1), np.array([1.5]))
    assert seconds.item() == pytest.approx(1.2, rel=1e-15)


def plain_loop_s(trace, start_s, bits):
    """Walk through the pieces one by one."""
    edges, rates = trace
    period, now, left = edges[-1], start_s, bits
    while True:
        loop, phase = divmod(now, period)
        piece = min(int(np.searchsorted(edges, phase, side="right")) - 1, rates.size - 1)
        until = loop * period + edges[piece + 1]
        carried = rates[piece] * (until - now)
        if carried >= left and rates[piece] > 0:
            return now + left / rates[piece] - start_s
        left, now = left - carried, until


def traces():
    pieces = st.lists(
        st.tuples(st.integers(1, 50), st.sampled_from([0.0, 1.0, 2.5, 40.0, 1e3])), min_size=1, max_size=8
    ).filter(lambda found: any(rate for _, rate in found))
    return pieces.map(
        lambda found: (
            np.concatenate([[0.0], np.cumsum([length / 8 for length, _ in found])]),
            np.array([rate for _, rate in found]),
        )
    )


@pytest.mark.slow
@given(st.lists(traces(), min_size=1, max_size=4), st.data())
def test_the_integral_of_the_rate_over_a_transfer_is_its_bits(several, data):
    capacities = Capacities.of(several)
    number = data.draw(st.integers(1, 6))
    drawn = st.lists(st.floats(0, 100, allow_subnormal=False), min_size=number, max_size=number)
    trace = np.array(data.draw(st.lists(st.integers(0, len(several) - 1), min_size=number, max_size=number)))
    start_s, bits = np.array(data.draw(drawn)), 100 * np.array(data.draw(drawn))
    seconds = capacities.transfer_s(trace, start_s, bits)
    slack = 1e-9 * (1 + bits + capacities.bits.max())
    assert np.all(np.abs(capacities.between_bits(trace, start_s, start_s + seconds) - bits) <= slack + 1e-7)
    # No more bits in less time, and no transfer depends on the others of the call.
    assert np.all(capacities.transfer_s(trace, start_s, 1.5 * bits + 1) >= seconds)
    for at in range(number):
        assert seconds[at] == took(capacities, start_s[at], bits[at], trace[at])
        plain_s = plain_loop_s(several[trace[at]], start_s[at], bits[at]) if bits[at] > 1e-6 else 0.0
        if bits[at] > 1e-6:
            carried = capacities.between_bits(trace[at : at + 1], start_s[at : at + 1], start_s[at : at + 1] + plain_s)
            assert carried.item() == pytest.approx(bits[at], rel=1e-9, abs=1e-6)
