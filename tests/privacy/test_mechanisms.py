"""What the mechanisms release: the noise's law, the clip, and the guarantee each gives."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
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


def noiseless(mechanism, update, buffers=None):
    """Release with so large an epsilon that the noise is below the rounding of the largest coordinate."""
    return mechanism.release(update, 1e30, nowhere(update) if buffers is None else buffers, rng())


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
    assert mechanism.noise_energy(epsilon, nowhere(zeros)) == pytest.approx(SAMPLE * law(epsilon).var())


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
        np.testing.assert_allclose(noiseless(mechanism, update, buffers), found, rtol=1e-6, atol=bound * 1e-14)


def log_density_ratio(sent, one, other, scale):
    """Return ln of how much likelier a release is for one centre than for the other."""
    return (np.abs(sent - other) - np.abs(sent - one)).sum() / scale


@given(seed=st.integers(0, 10**6), dimension=st.integers(1, 500), epsilon=st.floats(0.01, 20.0))
def test_l1_release_of_a_vector_is_epsilon_private_whatever_its_dimension(seed, dimension, epsilon):
    clip, generator = 0.7, rng(seed)
    mechanism = L1ClippedLaplace(clip=clip)
    one, other = (generator.normal(scale=generator.choice([1e-3, 1, 100]), size=dimension) for _ in range(2))
    sent = mechanism.release(one.astype(np.float32), epsilon, np.zeros(dimension, dtype=bool), generator)
    centres = [v * min(1.0, clip / np.abs(v).sum()) for v in (one, other)]
    ratio = log_density_ratio(sent.astype(np.float64), *centres, scale=2 * clip / epsilon)
    assert abs(ratio) <= epsilon * (1 + 1e-6)


def test_coordinate_release_is_private_for_a_coordinate_but_not_for_the_vector():
    """What its docstring says: of two opposite updates of d coordinates, one is e^(d epsilon) times likelier."""
    dimension, delta_f, epsilon = 1000, 0.01, 1.0
    up = np.full(dimension, 1.0, dtype=np.float32)
    sent = CoordinateClampLaplace(delta_f=delta_f).release(up, epsilon, nowhere(up), rng(4)).astype(np.float64)
    scale, half = delta_f / epsilon, delta_f / 2
    each = (np.abs(sent + half) - np.abs(sent - half)) / scale
    assert np.all(np.abs(each) <= epsilon * (1 + 1e-6))
    vector = log_density_ratio(sent, np.full(dimension, half), np.full(dimension, -half), scale)
    assert vector > 100 * epsilon


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
