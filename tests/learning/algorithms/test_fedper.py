"""FedPer: personal layers stay with their client, are not sent, and go on from one training to the next."""

import numpy as np
import pytest

from fedsim.errors import ScenarioError
from tests.support.asking import next_model

SHARED = 16 * 5 + 5  # of the perceptron 16-5-3; the last layer has 5 * 3 + 3
LOCAL = {"epochs": 3, "batch_size": 5, "learning_rate": 0.3}


def test_the_last_layer_is_neither_sent_nor_changed(make_learner):
    learner = make_learner(algorithm="fedper", local=LOCAL)
    assert (learner.model_bits, learner.update_bits) == (32 * SHARED, 32 * SHARED)
    start = learner.vector(learner.initial())
    after = learner.vector(next_model(learner, learner.initial(), [0, 1]))
    assert np.array_equal(after[SHARED:], start[SHARED:])
    assert not np.array_equal(after[:SHARED], start[:SHARED])


def test_one_client_alone_trains_as_if_nothing_were_personal(make_learner):
    """With one client the shared layers are its own: after three rounds they are those of plain training."""
    found = []
    for algorithm in ("plain", "fedper"):
        learner = make_learner(algorithm=algorithm, local=LOCAL)
        model = learner.initial()
        for _ in range(3):
            model = next_model(learner, model, [2])
        found.append(learner.vector(model)[:SHARED])
    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_more_personal_layers_than_the_model_has_are_refused(make_learner):
    with pytest.raises(ScenarioError, match=r"learning\.algorithm\.layers: 2 is not allowed with a model of 2 layers"):
        make_learner(algorithm={"kind": "fedper", "layers": 2})
