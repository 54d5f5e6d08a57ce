"""Where a battery runs empty, worked by hand: phases of one second each, with a cost of their own."""

import numpy as np
import pytest

from fedsim.rounds import Deadline
from tests.support.stories import rows
from tests.support.worlds import CountingLearner, batteries, serve

PRICES = ("receive", "sample", "send")


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
    power = batteries([charge_j], **dict(zip(PRICES, costs_j, strict=True)), capacity=1e9, least=0.0)
    learner = CountingLearner(np.array([1]))
    history, *_ = serve(Deadline(deadline_s=9), [1], [1], [1], batteries=power, learner=learner, audit=False)
    assert rows(history.participations, "cut_in", "energy_j") == [(cut_in, min(charge_j, np.sum(costs_j)))]
