"""EAFL: rewards by hand, and Oort as its limit."""

import numpy as np
import pytest

from fedsim.selectors import Oort
from fedsim.selectors.energy.eafl import Eafl, power_left
from tests.support.views import measured_reports_of, rng, view_of

BATTERIES = {
    "charge_j": [10.0, 50.0, 100.0],
    "capacity_j": [100.0, 100.0, 200.0],
    "participation_j": [20.0, 10.0, 20.0],
}


def tried(selector, loss_rms):
    """Let three clients of one sample each have delivered updates with these losses."""
    selector.select(view_of(3), rng())
    selector.observe(measured_reports_of([0, 1, 2], loss_rms=np.array(loss_rms)))
    return selector


def test_power_is_the_share_that_a_participation_leaves():
    np.testing.assert_allclose(power_left(view_of(3, **BATTERIES)), [0.0, 0.4, 0.4])
    assert power_left(view_of(3)).tolist() == [1.0] * 3


def test_rewards_by_hand():
    selector = tried(Eafl(1, utility_share=0.25), [4.0, 2.0, 1.0])
    selector.select(view_of(3, round=2, **BATTERIES), rng())
    plain = tried(Oort(1), [4.0, 2.0, 1.0])
    utility = plain.utility(np.arange(3), 1)
    # In round 1 the uncertainty is 0; the utilities are clipped at their 95th percentile, 3.8.
    np.testing.assert_allclose(utility, [3.8, 2.0, 1.0])
    expected = 0.25 * utility / 3.8 + 0.75 * np.array([0.0, 0.4, 0.4])
    np.testing.assert_allclose(selector.utility(np.arange(3), 1), expected)


@pytest.mark.parametrize(("share", "expected"), [(1.0, [0]), (0.0, [1, 2])])
def test_the_limits_are_oort_and_batteries_alone(share, expected):
    options = {"exploration": 0.0, "exploration_least": 0.0}
    selector = tried(Eafl(1, utility_share=share, **options), [4.0, 1.0, 1.0])
    found = {selector.select(view_of(3, round=2, participations=[1, 1, 1], **BATTERIES), rng()).client[0]}
    assert found <= set(expected)
