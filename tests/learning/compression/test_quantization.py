"""QSGD against the lemma of its paper, and against a plain loop over exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.learning import QSGD


class Fixed:
    def __init__(self, draws):
        self.draws = np.array(draws)

    def random(self, size):
        return self.draws[:size]


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=12),
    st.integers(1, 40),
    st.integers(1, 5),
    st.randoms(use_true_random=False),
)
def test_the_largest_absolute_value_as_norm_is_a_loop_over_fractions(values, levels, bucket, random):
    draws = [random.randrange(1, 64, 2) / 64 for _ in values]
    cut = max(1, len(values) // 3)
    tensors = [cut, len(values) - cut] if len(values) > cut else [cut]
    expected = []
    for part in parts(values, tensors, bucket):
        norm = max(map(abs, part))
        for value in part:
            exact = Fraction(abs(value) * levels, norm or 1)
            level = int(exact) + (draws[len(expected)] >= 1 - (exact - int(exact)))
            expected.append((1 if value >= 0 else -1) * norm * level / levels)
    found = QSGD(levels=levels, bucket=bucket, norm="max").compress(np.array(values, np.float32), tensors, Fixed(draws))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def parts(values, tensors, bucket):
    """Cut values by tensors, and each tensor by the size of a bucket."""
    first = 0
    for size in tensors:
        tensor = values[first : first + size]
        yield from (tensor[i : i + bucket] for i in range(0, size, bucket))
        first += size


@pytest.mark.statistical
@pytest.mark.parametrize("levels", [1, 4, 16])
@pytest.mark.parametrize("size", [10, 400])
def test_it_is_unbiased_and_its_variance_is_within_the_bound_of_lemma_3_1(levels, size):
    rng = np.random.default_rng(7)
    update = rng.standard_normal(size).astype(np.float32)
    draws = 1000
    found = np.array([QSGD(levels=levels).compress(update, (size,), rng) for _ in range(draws)], np.float64)
    norm = np.linalg.norm(update)
    # Each number is one of two levels: its variance is exactly f (1 - f) (norm / s)^2, f the part above a level.
    part = (levels * np.abs(update) / norm) % 1
    deviation = np.sqrt(part * (1 - part)) * norm / levels
    away = np.abs(found.mean(axis=0) - update) / np.maximum(deviation / np.sqrt(draws), 1e-7)
    assert away.max() < 5  # of at most 400 normal numbers
    errors = np.square(found - update).sum(axis=1)
    assert errors.mean() == pytest.approx(np.square(deviation).sum(), abs=5 * errors.std() / np.sqrt(draws))
    assert errors.mean() <= min(size / levels**2, np.sqrt(size) / levels) * norm**2


def test_bits_are_a_norm_for_each_bucket_and_sign_and_level_for_each_number():
    # 127 levels and zero are 7 bits; 100 + 30 numbers in buckets of at most 64: 64, 36, 30.
    assert QSGD(levels=127).bits((100, 30)) == 130 * 8 + 2 * 32
    assert QSGD(levels=127, bucket=64).bits((100, 30)) == 130 * 8 + 3 * 32
    assert QSGD(levels=1).bits((100,)) == 100 * 2 + 32
    assert QSGD(levels=4).bits((100,)) == 100 * 4 + 32


def test_a_bucket_of_zeros_stays_and_one_that_is_not_finite_spoils_no_other():
    update = np.array([0, 0, np.inf, 1, 3, 4], np.float32)
    found = QSGD(levels=5, bucket=2).compress(update, (6,), Fixed([0.0] * 6))
    assert found[:2].tolist() == [0, 0]
    assert not np.isfinite(found[2:4]).all()
    assert found[4:].tolist() == [3, 4]
