"""FedDyn against two rounds worked out by hand on two parameters."""

import numpy as np

from fedsim.learning import FedDyn, LocalTraining
from tests.support.plain_learner import half_way_learner, updates

TARGETS = [(4.0, 0.0), (0.0, 8.0)]


def test_two_rounds_by_hand():
    """The pull is zero in the only step of a training."""
    learner, _ = half_way_learner(TARGETS, LocalTraining(learning_rate=1.0), FedDyn(alpha=0.5))
    start = learner.initial()
    first = learner.aggregate(start, updates(learner, start, 0, 1), np.array([0.5, 0.5]))
    # Differences (2, 0) and (0, 4): h = -0.5 / 2 (2, 4), and the model moves by (1, 2) - h / 0.5.
    assert learner.vector(first).tolist() == [2, 4, 1]
    assert first.server_state["algorithm.h"].tolist() == [-0.5, -1]
    # g_0 = -0.5 (2, 0): the client goes (1, -2) + g_0, and h falls by 0.25 (0, -2).
    second = learner.aggregate(first, updates(learner, first, 0), np.array([1.0]))
    assert learner.vector(second).tolist() == [2 + 0 + 1, 4 - 2 + 1, 2]
    assert second.server_state["algorithm.h"].tolist() == [-0.5, -0.5]
