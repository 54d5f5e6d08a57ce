"""Top-k and random-k against sorting by hand, and against their contraction."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from fedsim.learning import RandomK, TopK

NUMBERS = arrays(np.float32, st.integers(1, 40), elements=st.floats(-9, 9, width=16))


@given(NUMBERS, st.floats(0.01, 1))
def test_top_k_sends_what_a_stable_sort_puts_first_and_contracts(update, share):
    count = max(1, round(share * update.size))
    first = sorted(range(update.size), key=lambda i: (-abs(update[i]), i))[:count]
    found = TopK(share=share).compress(update, (update.size,), np.random.default_rng(0))
    assert found.tolist() == [update[i] if i in first else 0 for i in range(update.size)]
    # Stich et al., Definition 2.1: at most 1 - k/p of the squared norm is left out.
    left = np.square(update - found, dtype=np.float64).sum()
    assert left <= (1 - count / update.size) * np.square(update, dtype=np.float64).sum() * (1 + 1e-9)


@given(NUMBERS, st.floats(0.01, 1), st.integers(0, 99))
def test_random_k_sends_as_many_numbers_as_they_are_or_scaled(update, share, seed):
    count = max(1, round(share * update.size))
    kept = RandomK(share=share).compress(update + 10, (update.size,), np.random.default_rng(seed))
    assert np.count_nonzero(kept) == count
    sent = kept != 0
    assert np.array_equal(kept[sent], (update + 10)[sent])
    scaled = RandomK(share=share, error_feedback=False)
    found = scaled.compress(update + 10, (update.size,), np.random.default_rng(seed))
    np.testing.assert_allclose(found, kept * (update.size / count), rtol=1e-6)


@pytest.mark.statistical
def test_random_k_without_feedback_is_unbiased_and_with_it_leaves_out_its_share():
    update = np.arange(1, 21, dtype=np.float32)
    rng, draws = np.random.default_rng(3), 1500
    found = np.array([RandomK(share=0.25, error_feedback=False).compress(update, (20,), rng) for _ in range(draws)])
    # A number v is 4 v with probability 1/4, else 0: its deviation is sqrt(3) v.
    assert (np.abs(found.mean(axis=0) - update) / (np.sqrt(3) * update / np.sqrt(draws))).max() < 4.5
    left = [np.square(update - RandomK(share=0.25).compress(update, (20,), rng)).sum() for _ in range(draws)]
    # In the mean 3/4 of the squares are left out.
    assert np.mean(left) == pytest.approx(0.75 * np.square(update).sum(), abs=5 * np.std(left) / np.sqrt(draws))


def test_bits_are_those_of_the_numbers_and_of_their_places():
    # 1 % of 1,025 numbers are 10; a place among 1,025 takes 11 bits, one among 1,024 takes 10.
    assert TopK(share=0.01).bits((1000, 25)) == 10 * (32 + 11)
    assert RandomK(share=0.01).bits((1000, 24)) == 10 * (32 + 10)
    assert RandomK(share=0.01, shared_seed=True).bits((1000, 24)) == 10 * 32 + 64
    assert TopK(share=0.001).bits((1,)) == 32


def test_what_has_diverged_is_sent_first():
    update = np.array([5, np.nan, -7, np.inf], np.float32)
    found = TopK(share=0.5).compress(update, (4,), np.random.default_rng(0))
    np.testing.assert_array_equal(found, [0, np.nan, 0, np.inf])
