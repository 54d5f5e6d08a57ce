"""Where a battery runs empty, worked by hand: phases of one second each, with a cost of their own."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simpy import Environment

from fedsim.devices import Always, EnergyDemand
from fedsim.rounds.effects.battery import Battery
from fedsim.rounds.plan import Look, Plan
from fedsim.rounds.run import Run
from fedsim.rounds.workload import Workload
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from tests.support.worlds import CountingLearner, FixedCompute, FixedLinks, batteries

LASTS = 3


def runs_empty(charge_j, costs_j):
    """Return the phase in which a battery runs empty and the share of it that is paid for, and the energy demand."""
    receive, sample, send = costs_j
    battery = Battery(batteries([charge_j], receive=receive, sample=sample, send=send, capacity=1e9))
    online, work = Always().build(RunSetup(1, Streams(0))), Workload(CountingLearner(np.array([1])))
    battery.begin(
        Run(Environment(), RunSetup(1, Streams(0)), FixedLinks([1.0], [1.0]), FixedCompute([1.0]), online, work)
    )
    one = np.ones(1)
    plan = Plan(np.array([0]), 1, 1, Look(0.0, 1), bits=(1.0, 1.0), samples=one, compute_s=one)
    plan.begin(0.0)
    plan.spent_s[:], plan.begun_s[:, 0] = 1.0, np.arange(3)
    battery.plan(plan)
    for phase in range(3):
        limit = battery.limit(plan, phase, plan.everyone)
        if limit is not None:
            return phase, limit.active_s[0], plan.notes[EnergyDemand]
        battery.passed(plan, phase, plan.everyone)
    return LASTS, 1.0, plan.notes[EnergyDemand]


@pytest.mark.parametrize(
    ("charge_j", "costs_j", "phase"),
    [
        (0.6, [0.1, 0.2, 0.3], LASTS),
        (0.6 - 1e-9, [0.1, 0.2, 0.3], 2),
        (0.3, [0.1, 0.1, 0.1], LASTS),
        (1e6 + 0.1, [5e5, 5e5, 0.1], LASTS),
        (1e6 + 0.1 - 1e-8, [5e5, 5e5, 0.1], 2),
        (1e6, [1e6 + 1e-8, 0.0, 0.0], 0),
        (1.0, [1.0 + 8 * 2.0**-52, 0.0, 0.0], LASTS),
        (1.0, [1.0 + 9 * 2.0**-52, 0.0, 0.0], 0),
    ],
)
def test_only_what_rounding_takes_is_forgiven(charge_j, costs_j, phase):
    """0.3 - 0.1 - 0.1 is 2.8e-17 short of 0.1, and 1e6 + 0.1 - 1e6 2.3e-11, a fifth of the last digit of the charge.

    1e-8 J are 86 times that digit. Eight units in the last place are forgiven, the eighth included; and never more is
    spent than there is.
    """
    found, _, demand = runs_empty(charge_j, costs_j)
    assert found == phase
    spent = demand.spent_j(np.array([0]), np.ones((3, 1)), np.array([False]), np.zeros((3, 1)))
    assert spent[0] == min(charge_j, np.sum(costs_j))


@given(st.integers(1, 60), st.lists(st.integers(0, 30), min_size=3, max_size=3))
def test_a_battery_runs_empty_where_exact_arithmetic_says(charge, costs):
    phase, share, demand = runs_empty(float(charge), [float(cost) for cost in costs])
    left = Fraction(charge)
    for number, cost in enumerate(costs):
        if cost > left:
            assert (phase, share) == (number, pytest.approx(float(left / cost)))
            break
        left -= cost
    else:
        assert phase == LASTS
    done = np.array([[float(number < phase)] for number in range(3)])
    if phase < LASTS:
        done[phase] = share
    spent = demand.spent_j(np.array([0]), done, np.array([phase < LASTS]), np.zeros((3, 1)))[0]
    assert spent == pytest.approx(min(charge, sum(costs)))
