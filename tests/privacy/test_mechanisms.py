"""What the mechanisms release: the noise's law, the clip, and the guarantee each gives."""

import math

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from hypothesis.extra import numpy as npst
from scipy import stats

from fedsim.privacy import CoordinateClampLaplace, L1ClippedLaplace, L2ClippedGaussian
from fedsim.privacy.gaussian import noise_multiplier
from tests.support.bounds import dkw
from tests.support.views import rng

SAMPLE = 40_000
KS_LIMIT = dkw(SAMPLE, 1e-5)
FLOAT32 = npst.arrays(np.float32, st.integers(1, 30), elements=st.floats(width=32))
# A release rounded to float32 is off by at most this share of its size.


def nowhere(update):
    return np.zeros(update.shape, dtype=bool)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.05, 0.784, 30.0])
@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (L1ClippedLaplace(clip=1.5), lambda epsilon: stats.laplace(scale=3.0 / epsilon)),
        (CoordinateClampLaplace(delta_f=0.012), lambda epsilon: stats.laplace(scale=0.012 / epsilon)),
        (
            L2ClippedGaussian(clip=1.5, delta=1e-4),
            lambda epsilon: stats.norm(scale=3.0 * noise_multiplier(epsilon, 1e-4)),
        ),
    ],
    ids=["l1", "coordinate", "gaussian"],
)
def test_noise_has_the_law_of_its_sensitivity(mechanism, law, epsilon):
    zeros = np.zeros(SAMPLE, dtype=np.float32)
    noise = mechanism.release(zeros, epsilon, nowhere(zeros), rng(1))
    assert stats.kstest(noise, law(epsilon).cdf).statistic < KS_LIMIT
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 5 / math.sqrt(SAMPLE)
    for exempt in (0, 7):
        stating, buffers = mechanism.model_copy(update={"exempt_buffers": exempt > 0}), np.arange(SAMPLE) < 7
        assert stating.noise_energy(epsilon, buffers) == pytest.approx((SAMPLE - exempt) * law(epsilon).var())
        assert mechanism.delta or stating.noise_energy(0.0, buffers) == math.inf


@given(update=FLOAT32, exempt=st.booleans(), bound=st.floats(1e-3, 1e3))
@example(update=np.array([np.inf, np.nan, -np.inf, 3.4e38], np.float32), exempt=False, bound=3.0)
def test_updates_are_clipped_by_their_formulas_and_exempt_numbers_pass(update, exempt, bound):
    """NaN counts as nothing and an infinity as the largest float32; a release without its noise is what is clipped."""
    buffers = np.arange(update.size) % 3 == 0
    clear = buffers & exempt
    numbers = np.nan_to_num(update).astype(np.float64)
    lengths = {order: np.linalg.norm(numbers[~clear], order) if not clear.all() else 0.0 for order in (1, 2)}
    shares = {order: bound / length if length > bound else 1.0 for order, length in lengths.items()}
    for mechanism, clipped in (
        (L1ClippedLaplace(clip=bound, exempt_buffers=exempt), numbers * shares[1]),
        (CoordinateClampLaplace(delta_f=bound, exempt_buffers=exempt), np.clip(numbers, -bound / 2, bound / 2)),
        (L2ClippedGaussian(clip=bound, exempt_buffers=exempt), numbers * shares[2]),
    ):
        found, wanted = mechanism.clipped(update, buffers), np.where(clear, update, clipped)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-30)
        noiseless = mechanism.release(update, 1e30, buffers, rng())  # noise below the rounding of the largest number
        np.testing.assert_allclose(noiseless, found, rtol=1e-6, atol=bound * 1e-14)


@pytest.mark.parametrize("mechanism", [L1ClippedLaplace, CoordinateClampLaplace])
def test_exempt_coordinates_pass_untouched_and_the_others_do_not_notice(mechanism):
    bound = {"clip": 1e-3} if mechanism is L1ClippedLaplace else {"delta_f": 1e-3}
    update = np.array([0.0, 5.0, 0.0, -7.5], dtype=np.float32)
    buffers = np.array([False, True, False, True])
    exempt = mechanism(**bound, exempt_buffers=True).release(update, 1.0, buffers, rng(5))
    treated = mechanism(**bound, exempt_buffers=False).release(update, 1.0, buffers, rng(5))
    assert exempt[buffers].tolist() == [5.0, -7.5]
    assert np.all(np.abs(treated[buffers]) < 1.0)
    np.testing.assert_array_equal(exempt[~buffers], treated[~buffers])


def test_defaults_say_what_the_kinds_promise():
    assert L1ClippedLaplace(clip=1.0).exempt_buffers is False
    assert CoordinateClampLaplace(delta_f=1.0).exempt_buffers is True


@given(update=FLOAT32, epsilon=st.sampled_from([0.0, 5e-324, 1e-300, 1e-40, 1.0]))
def test_every_release_is_a_finite_float32_vector(update, epsilon):
    before = update.copy()
    for mechanism in (L1ClippedLaplace(clip=2.0), CoordinateClampLaplace(delta_f=0.01), L2ClippedGaussian(clip=1.0)):
        sent = mechanism.release(update, epsilon, nowhere(update), rng(6))
        assert sent.dtype == np.float32
        assert sent.shape == update.shape
        assert np.all(np.isfinite(sent))
    np.testing.assert_array_equal(update, before)


@pytest.mark.parametrize(
    "mechanism", [L1ClippedLaplace(clip=1.0), CoordinateClampLaplace(delta_f=1.0), L2ClippedGaussian(clip=1.0)]
)
def test_wrong_arguments_are_refused(mechanism):
    update = np.zeros(3, dtype=np.float32)
    for epsilon in (-1.0, math.nan):
        with pytest.raises(ValueError, match=r"epsilon: .* is not allowed"):
            mechanism.release(update, epsilon, nowhere(update), rng())
    with pytest.raises(ValueError, match="buffers: shape"):
        mechanism.release(update, 1.0, np.zeros(4, dtype=bool), rng())
