"""Losses that see their batch are refused where batches are filled up, and flat ones everywhere."""

import numpy as np
import pytest
import torch

from fedsim.errors import FedsimError
from fedsim.learning import MLP, ExecutorChoice, LocalTraining, Regression, TrainingSetup
from tests.support.tiny_targets import TinyTargets


def squared(scores, targets):
    return (scores - targets).square().mean(1)


LAWS = {
    "centred": lambda scores, targets: squared(scores - scores.mean(0), targets),
    "scaled": lambda scores, targets: squared(scores, targets) / targets.abs().max(),
    "sized": lambda scores, targets: squared(scores, targets) / len(targets),
    "odd": lambda scores, targets: squared(scores, targets) * (1 + len(targets) % 2),
    # Looks at each sample alone, and gives no number for some.
    "absolute": lambda scores, targets: (scores - targets).abs().sum(1) + 0 * scores[:, 0].log(),
}


class Own(Regression):
    law: str

    def losses(self, scores, targets):
        return LAWS[self.law](scores, targets)


def setup(task):
    return TrainingSetup(MLP(hidden=(4,)), TinyTargets().load(), LocalTraining(batch_size=30), seed=2, task=task)


@pytest.mark.parametrize("law", ["centred", "scaled", "sized", "odd"])
def test_a_loss_that_sees_its_batch_is_not_stacked(law):
    with pytest.raises(FedsimError, match=r"learning\.task: losses of Own depend on the other samples"):
        ExecutorChoice("stacked").build(setup(Own(law=law)))


@pytest.mark.parametrize("task", [Regression(), Own(law="absolute")])
def test_a_loss_of_each_sample_is_stacked_without_a_draw_from_the_global_generator(task):
    before = torch.get_rng_state()
    assert np.isfinite(ExecutorChoice("stacked").build(setup(task)).max_batch)
    assert torch.equal(torch.get_rng_state(), before)
