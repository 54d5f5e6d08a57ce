"""MOON's contrast by hand, and where it is refused; `test_plain_loop.py` has the formula in autograd."""

import numpy as np
import pytest
import torch

from fedsim.errors import FedsimError
from fedsim.learning import Batch, ExecutorChoice, Moon, Supervised, TrainingRun
from fedsim.streams import Streams
from tests.support.asking import next_model
from tests.support.tiny_images import Tiny

LOCAL = {"epochs": 2, "batch_size": 5, "learning_rate": 0.3}


def test_the_contrast_by_hand():
    """Cosines 1 and 0 at temperature 0.5: -log(e^2 / (e^2 + 1)); and 0 and 1: -log(1 / (1 + e^2))."""
    z = torch.tensor([[3.0, 0.0], [0.0, 2.0]])
    anchors = {"server": torch.tensor([[5.0, 0.0], [1.0, 0.0]]), "last": torch.tensor([[0.0, 1.0], [0.0, 4.0]])}
    found = Moon(mu=2.0, temperature=0.5).loss(Batch(torch.tensor(0.25), None, None, z, anchors))
    by_hand = (np.log(1 + np.exp(-2)) + np.log(1 + np.exp(2))) / 2
    assert float(found) == pytest.approx(0.25 + 2.0 * by_hand)


def test_the_first_training_is_plain_and_the_second_is_not(make_learner):
    models = []
    for algorithm in ("plain", {"kind": "moon", "mu": 0.0}, {"kind": "moon", "mu": 5.0}):
        learner = make_learner(local=LOCAL, algorithm=algorithm)
        # Of two clients: the last model of a single one would be the server's.
        first = next_model(learner, learner.initial(), [0, 1])
        models.append([learner.vector(one) for one in (first, next_model(learner, first, [1]))])
    plain, without, contrasted = models
    assert np.array_equal(plain[0], contrasted[0])
    assert not np.array_equal(plain[1], contrasted[1])
    assert np.array_equal(plain[1], without[1])


def test_executors_of_whole_cohorts_refuse_a_loss_of_its_own_and_auto_takes_one_that_can():
    settings = Supervised.model_validate({"data": Tiny(), "model": {"hidden": [5]}, "algorithm": "moon"})
    for executor in ("stacked",):
        with pytest.raises(FedsimError, match="Moon has a loss of its own, which the executor 'stacked"):
            settings.build(TrainingRun(6, Streams(3), executor=ExecutorChoice(executor)))
    learner = settings.build(TrainingRun(6, Streams(3), executor=ExecutorChoice("auto", rounds=2)))
    assert learner.executor_used.kind == "sequential"
