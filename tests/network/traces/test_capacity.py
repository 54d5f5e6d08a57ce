"""Capacities over time, against closed forms and a plain loop over the pieces."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.network.traces.capacity import Capacities
from tests.support.step_by_step import bits_within, pieces_from, seconds_of

FLAT = (np.array([0.0, 7.0]), np.array([5.0]))


def test_the_seconds_of_a_trace_have_all_their_digits_beside_one_that_holds():
    """Until 1.5 s, 1.2 s with a rate; the trace before it goes on to the end of time."""
    steps = np.array([0.0, 0.7, 1.0, 2.0]), np.array([10.0, 0.0, 30.0])
    seconds = Capacities.of([FLAT, steps], "hold").between_s(np.array([1]), np.zeros(1), np.array([1.5]))
    assert seconds.item() == pytest.approx(1.2, rel=1e-15)


PIECES = st.lists(st.tuples(st.integers(1, 50), st.sampled_from([0.0, 1.0, 2.5, 40.0, 1e3])), min_size=1, max_size=8)
# Instants and bits of which none coincides with an edge or a piece's bits but for a start at 0.
ASKED = st.tuples(
    st.integers(0, 5), st.just(0.0) | st.integers(0, 400).map(lambda n: n / 4 + 0.03), st.floats(0.1, 1e4)
)


@given(
    st.lists(PIECES.filter(lambda found: any(rate for _, rate in found)), min_size=1, max_size=4),
    st.lists(ASKED, min_size=1, max_size=6),
    st.sampled_from(["repeat", "hold", "none"]),
)
def test_transfers_and_their_bits_are_those_of_a_walk_from_piece_to_piece(several, asked, after):
    traces = [
        (np.cumsum([0.0, *(length / 8 for length, _ in found)]), np.array([rate for _, rate in found]))
        for found in several
    ]
    capacities = Capacities.of(traces, after)
    trace = np.array([number % len(traces) for number, _, _ in asked])
    start_s, bits = (np.array(column) for column in list(zip(*asked, strict=True))[1:])
    seconds = bits / 500.0

    def walks(rate_of=lambda rate: rate):
        for number, from_s in zip(trace, start_s, strict=True):
            edges_s, rate_bps = traces[number]
            yield pieces_from(from_s, edges_s, rate_of(rate_bps), after)

    took_s = [seconds_of(*asked) for asked in zip(bits, walks(), strict=True)]
    np.testing.assert_allclose(capacities.transfer_s(trace, start_s, bits), took_s, rtol=1e-9, atol=1e-9)
    carried = [bits_within(*asked) for asked in zip(seconds, walks(), strict=True)]
    np.testing.assert_allclose(capacities.between_bits(trace, start_s, start_s + seconds), carried, atol=1e-6)
    busy_s = [bits_within(*asked) for asked in zip(seconds, walks(lambda rate: 1.0 * (rate > 0)), strict=True)]
    np.testing.assert_allclose(capacities.between_s(trace, start_s, start_s + seconds), busy_s, atol=1e-9)
    assert not capacities.transfer_s(trace, start_s, 0.0).any()
