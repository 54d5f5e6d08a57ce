"""FedProx is the proximal term of local training, and with mu 0 plain training, bit by bit."""

import numpy as np
import pytest

from tests.support.asking import next_model

LOCAL = {"epochs": 2, "batch_size": 5, "learning_rate": 0.3}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"algorithm": {"kind": "fedprox", "mu": 0.0}, "local": LOCAL}, {"local": LOCAL}),
        ({"algorithm": {"kind": "fedprox", "mu": 0.7}, "local": LOCAL}, {"local": {**LOCAL, "proximal": 0.7}}),
    ],
    ids=["mu 0 is plain", "the proximal term"],
)
def test_the_same_bits(make_learner, one, other):
    learners = [make_learner(**settings) for settings in (one, other)]
    models = [learner.vector(next_model(learner, learner.initial(), [0, 1])) for learner in learners]
    assert np.array_equal(*models)
