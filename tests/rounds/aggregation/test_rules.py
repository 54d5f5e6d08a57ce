"""What an aggregation rule of the user's own may return."""

from types import SimpleNamespace

import numpy as np
import pytest

from fedsim.errors import PartError
from fedsim.rounds.aggregation.rules import AGGREGATION_RULE, Aggregated, AggregationRule

ARRIVALS = SimpleNamespace(client=np.array([4, 7, 9]))


class Own(AggregationRule):
    """Returns what it was made with."""

    def __init__(self, weight, held):
        self.answer = Aggregated("next", np.array(weight), np.array(held))

    def accepts(self, staleness, late):
        return ~late

    def aggregate(self, model, arrivals):
        return self.answer


def test_weights_may_be_missing_and_what_is_returned_is_a_copy():
    own = Own([0.5, np.nan, 0.25], [False, True, False])
    made = AGGREGATION_RULE.checked(own).aggregate("present", ARRIVALS)
    assert made.model == "next"
    np.testing.assert_array_equal(made.weight, [0.5, np.nan, 0.25])
    assert made.held.tolist() == [False, True, False]
    own.answer.weight[:], own.answer.held[:] = 9.0, True
    np.testing.assert_array_equal(made.weight, [0.5, np.nan, 0.25])
    assert made.held.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("weight", "held"),
    [([0.5, 0.5], [False] * 3), ([0.5] * 3, [False] * 2), ([0.5, np.inf, 0.5], [False] * 3), ([0.5] * 3, [0.0] * 3)],
)
def test_a_weight_and_a_mark_for_each_arrival_are_due(weight, held):
    with pytest.raises(PartError, match="aggregate"):
        AGGREGATION_RULE.checked(Own(weight, held)).aggregate("present", ARRIVALS)
