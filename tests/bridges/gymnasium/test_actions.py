"""Actions as cohorts, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

pytest.importorskip("gymnasium", reason="the extra 'gym' is not installed")
from fedsim.bridges.gymnasium import Actions
from tests.support.views import view_of

VIEW = view_of([0, 2, 3, 5])


def chosen(actions, action, view=VIEW):
    cohort = actions.cohort_of(action, view)
    return None if cohort is None else cohort.client.tolist()


def test_scores_take_the_largest_candidates():
    """Clients 0, 2, 3 and 5 of six are candidates."""
    actions = Actions(6, "scores", 2)
    assert chosen(actions, [0.1, 0.9, 0.2, 0.3, 0.9, -1.0]) == [2, 3]
    assert chosen(actions, [0.5, 0, 0.5, 0.5, 0, 0.5]) == [0, 2]
    assert chosen(Actions(6, "scores", 5), np.zeros(6)) == [0, 2, 3, 5]
    assert chosen(actions, np.zeros(6), replace(VIEW, wanted=1)) == [0]


def test_members_are_those_that_are_marked():
    actions = Actions(6, "members", 2)
    assert chosen(actions, [1, 1, 0, 1, 0, 1]) == [0, 3, 5]
    assert chosen(actions, [0, 1, 0, 0, 1, 0]) is None


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=6))
def test_bands_share_the_whole(numbers):
    """In proportion to 10 ** a: a client with a number higher by 1 has ten times as much."""
    actions = Actions(6, "scores", 3, bandwidth_hz=1e6)
    cohort = actions.cohort_of({"clients": np.arange(6) / 6, "bandwidth": np.array(numbers)}, VIEW)
    assert cohort.client.tolist() == [2, 3, 5]
    band = cohort.allocation.bandwidth_hz
    assert band.sum() == pytest.approx(1e6)
    expected = np.log10(band[0] / band[1])
    assert expected == pytest.approx(numbers[2] - numbers[3], abs=1e-6)


@pytest.mark.parametrize("wrong", [np.zeros(5), np.zeros((6, 1)), [0, 0, 0, 0, 0, float("nan")]])
def test_actions_of_another_shape_are_refused(wrong):
    with pytest.raises(ValueError, match="allowed: a finite number for each of the 6 clients"):
        Actions(6, "scores", 2).cohort_of(wrong, VIEW)
    with pytest.raises(ValueError, match="bandwidth"):
        Actions(6, "scores", 2, 1e6).cohort_of({"clients": np.zeros(6), "bandwidth": wrong}, VIEW)
