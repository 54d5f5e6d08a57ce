"""Where a battery runs empty, worked by hand: phases of one second each, with a cost of their own."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.rounds import Deadline
from tests.support.stories import rows
from tests.support.worlds import CountingLearner, batteries, serve

PHASES = ("downlink", "compute", "uplink")


def participation(charge_j, costs_j):
    """Return in which phase a battery runs empty, at which second, and what was paid."""
    receive, sample, send = costs_j
    power = batteries([charge_j], receive=receive, sample=sample, send=send, capacity=1e9, least=0.0)
    learner = CountingLearner(np.array([1]))
    history, *_ = serve(Deadline(deadline_s=9), [1], [1], [1], batteries=power, learner=learner, audit=False)
    return rows(history.participations, "cut_in", "end_s", "energy_j")[0]


@pytest.mark.parametrize(
    ("charge_j", "costs_j", "cut_in"),
    [
        (0.6, [0.1, 0.2, 0.3], None),
        (0.6 - 1e-9, [0.1, 0.2, 0.3], "uplink"),
        (0.3, [0.1, 0.1, 0.1], None),
        (1e6 + 0.1, [5e5, 5e5, 0.1], None),
        (1e6 + 0.1 - 1e-8, [5e5, 5e5, 0.1], "uplink"),
        (1e6, [1e6 + 1e-8, 0.0, 0.0], "downlink"),
        (1.0, [1.0 + 8 * 2.0**-52, 0.0, 0.0], None),
        (1.0, [1.0 + 9 * 2.0**-52, 0.0, 0.0], "downlink"),
    ],
)
def test_only_what_rounding_takes_is_forgiven(charge_j, costs_j, cut_in):
    """0.3 - 0.1 - 0.1 is 2.8e-17 short of 0.1, and 1e6 + 0.1 - 1e6 2.3e-11, a fifth of the last digit of the charge.

    1e-8 J are 86 times that digit. Eight units in the last place are forgiven, the eighth included; and never more is
    spent than there is.
    """
    found, _, paid_j = participation(charge_j, costs_j)
    assert (found, paid_j) == (cut_in, min(charge_j, np.sum(costs_j)))


@given(st.integers(1, 60), st.lists(st.integers(0, 30), min_size=3, max_size=3))
def test_a_battery_runs_empty_where_exact_arithmetic_says(charge, costs):
    left, expected = Fraction(charge), (None, 3.0)
    for number, cost in enumerate(costs):
        if cost > left:
            expected = PHASES[number], number + float(left / cost)
            break
        left -= cost
    cut_in, end_s, paid_j = participation(float(charge), [float(cost) for cost in costs])
    assert (cut_in, end_s) == (expected[0], pytest.approx(expected[1]))
    assert paid_j == pytest.approx(min(charge, sum(costs)))
