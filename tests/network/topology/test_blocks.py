"""Seconds within blocks, against a plain walk from block to block."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedsim.network.topology.block_shares import passed_blocks, sent_after_s

BLOCKS = st.lists(st.tuples(st.floats(0.01, 10.0), st.floats(0.0, 100.0) | st.just(0.0)), min_size=1, max_size=8)


@given(blocks=BLOCKS, bits=st.floats(1e-6, 2000.0))
def test_bits_are_sent_when_a_walk_over_the_blocks_has_sent_them(blocks, bits):
    length_s, rate_bps = (np.array(column) for column in zip(*blocks, strict=True))
    sent_bits = np.cumsum(length_s * rate_bps)
    left, expected = bits, math.inf
    for number, (seconds, rate) in enumerate(blocks):
        if rate * seconds >= left and sent_bits[number] >= bits:
            expected = sum(length_s[:number]) + left / rate
            break
        left -= rate * seconds
    found = sent_after_s(np.cumsum(length_s), sent_bits[:, None], rate_bps[:, None], np.array([bits]))
    if math.isfinite(expected) and math.isfinite(found[0]):
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    else:
        # Within rounding of the end of the last block.
        assert abs(sent_bits[-1] - bits) <= 1e-9 * bits or found[0] == expected


def test_passed_blocks_by_hand():
    ends_s = np.array([1.0, 3.0, 6.0])
    found = [passed_blocks(ends_s, at_s) for at_s in (0.0, 0.5, 1.0, 2.5, 3.0, 6.0, 7.0)]
    assert found == list(zip([0, 0, 1, 1, 2, 2, 2], [0.0, 0.5, 0.0, 1.5, 0.0, 3.0, 4.0], strict=True))
