"""FedZero's rule: lengths of rounds, choice and blocking, by hand."""

import numpy as np
import pytest

from fedsim.selectors.energy.fedzero import FedZero
from tests.support.views import measured_reports_of, rng, view_of

# Times of 4, 6, 2 and 1 s; 10 J each at 5, 1, 2 and 0 W: 2, 10, 5 and infinitely many seconds of harvest.
FEATURES = np.array([[1.0, 2.0, 1.0], [1.0, 4.0, 1.0], [0.5, 1.0, 0.5], [0.0, 1.0, 0.0]])
BATTERIES = {
    "charge_j": [50.0, 50.0, 50.0, 50.0],
    "capacity_j": [100.0] * 4,
    "charging_w": [5.0, 1.0, 2.0, 0.0],
    "participation_j": [10.0] * 4,
    "features": FEATURES,
}


def known(selector, loss_rms, view=None):
    """Let four clients of one sample each have delivered, and none be blocked."""
    selector.select(view_of(4, **BATTERIES), rng())
    selector.observe(measured_reports_of([0, 1, 2, 3], loss_rms=np.array(loss_rms)))
    selector._blocked[:] = False
    return selector


def test_the_shortest_rounds_by_hand():
    assert FedZero(1).needed_s(view_of(4, **BATTERIES)).tolist() == [4.0, 10.0, 5.0, np.inf]
    # With a reserve of 45 % each has 5 J at once: 1, 5, 2.5 s and never.
    assert FedZero(1, reserve=0.45).needed_s(view_of(4, **BATTERIES)).tolist() == [4.0, 6.0, 2.5, np.inf]
    assert FedZero(1, reserve=0.0).needed_s(view_of(4, **BATTERIES)).tolist() == [4.0, 6.0, 2.0, 1.0]
    assert FedZero(1).needed_s(view_of(4, features=FEATURES)).tolist() == [4.0, 6.0, 2.0, 1.0]
    assert FedZero(1).needed_s(view_of(2)).tolist() == [0.0, 0.0]


def test_the_greatest_utilities_of_the_shortest_round_are_selected():
    losses = [1.0, 9.0, 2.0, 9.0]
    # One client: 4 s are enough, and in a step of 1 s no other can. In a step of 5 s client 2 can, and is worth more.
    assert known(FedZero(1, step_s=1.0), losses).select(view_of(4, **BATTERIES), rng()).client.tolist() == [0]
    assert known(FedZero(1, step_s=5.0), losses).select(view_of(4, **BATTERIES), rng()).client.tolist() == [2]
    assert known(FedZero(2, step_s=1.0), losses).select(view_of(4, **BATTERIES), rng()).client.tolist() == [0, 2]
    # Client 3 never has excess energy, and within 8 s client 1 has too little.
    assert known(FedZero(4), losses).select(view_of(4, **BATTERIES), rng()).client.tolist() == [0, 1, 2]
    assert known(FedZero(4, longest_s=8.0), losses).select(view_of(4, **BATTERIES), rng()).client.tolist() == [0, 2]


def test_without_excess_energy_the_fullest_battery_is_taken():
    empty = {**BATTERIES, "charging_w": [0.0] * 4, "charge_j": [10.0, 60.0, 20.0, 30.0]}
    assert FedZero(3).select(view_of(4, **empty), rng()).client.tolist() == [1]


def test_participants_are_blocked_and_released_by_chance():
    """Client 0 has 5 participations, 4 more than the mean of 1: it is released with 1/4, with 1/16 for alpha = 2."""
    view, found = {**BATTERIES, "participations": [4, 0, 0, 0], "charging_w": [5.0] * 4}, {}
    view["participations"] = [6, 0, 1, 1]
    for alpha in (1.0, 2.0):
        selector, draws, free = known(FedZero(1, alpha=alpha), [1.0] * 4), np.random.default_rng(1), 0
        for _ in range(2000):
            selector._blocked[:] = [True, True, True, True]
            selector._release(view_of(4, **view), draws)
            assert not selector._blocked[1:].any()
            free += not selector._blocked[0]
        found[alpha] = free / 2000
    # Six less the mean of two are four.
    assert found == {1.0: pytest.approx(1 / 4, abs=0.04), 2.0: pytest.approx(1 / 16, abs=0.025)}


def test_a_client_that_has_failed_comes_last():
    selector = known(FedZero(1), [1.0] * 4)
    selector.observe(measured_reports_of([0, 1], delivered=np.array([False, True]), loss_rms=0.1))
    assert selector.worth(view_of(4)).tolist() == [0.0, 0.1, 1.0, 1.0]
