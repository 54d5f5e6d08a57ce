"""What `test_algorithm` does not meet: ties, and the blacklist by itself."""

from copy import deepcopy

import numpy as np

from fedsim.selectors import OortFedScale
from fedsim.selectors.oort.state import blacklist
from tests.support.views import rng, taught, view_of


def test_who_was_selected_exactly_as_often_as_allowed_is_not_listed():
    view = view_of(4, round=2, participations=np.array([10, 11, 9, 30]))
    assert blacklist(view, 10, 1.0, rng()).tolist() == [False, True, False, True]
    assert blacklist(view, 10, 0.3, rng()).tolist() == [False, False, False, True]
    assert not blacklist(view, None, 1.0, rng()).any()
    equal = view_of(4, round=2, participations=np.array([30, 30, 9, 30]))
    assert {int(blacklist(equal, 10, 0.25, rng(seed)).argmax()) for seed in range(30)} == {0, 1, 3}


def test_equal_samples_are_explored_in_random_order():
    """FedScale's code goes by ids then: with one place and a window of five it would never look beyond five ids."""
    selector = taught(OortFedScale(1, exploration=1.0, exploration_decay=1.0), 20, loss_rms=[1.0])
    view = view_of(20, round=2)
    assert {int(deepcopy(selector).select(view, rng(seed)).client[0]) for seed in range(200)} == set(range(1, 20))
