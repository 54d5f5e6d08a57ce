"""Losses that see their batch are refused where batches are filled up, and flat ones everywhere."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from fedsim.errors import FedsimError, PartError
from fedsim.learning import MLP, ExecutorChoice, LocalTraining, Regression, Supervised, TrainingSetup
from fedsim.streams import Streams
from tests.support.tiny_targets import TinyTargets


class Contrast(Regression):
    """The score of a sample is to lie nearer to its target than to those of the others."""

    def losses(self, scores, targets):
        near = functional.normalize(scores, dim=1) @ functional.normalize(targets, dim=1).T
        return near.logsumexp(1) - near.diagonal()


class Centred(Regression):
    def losses(self, scores, targets):
        return (scores - scores.mean(0) - targets).square().mean(1)


class Scaled(Regression):
    def losses(self, scores, targets):
        return super().losses(scores, targets) / targets.abs().max()


class Sized(Regression):
    def losses(self, scores, targets):
        return super().losses(scores, targets) / len(targets)


class Absolute(Regression):
    """Looks at each sample alone, and gives no number for some."""

    def losses(self, scores, targets):
        return (scores - targets).abs().sum(1) + 0 * scores[:, 0].log()


class Detached(Regression):
    def losses(self, scores, targets):
        return super().losses(scores.detach(), targets)


class Counted(Regression):
    def losses(self, scores, targets):
        return (scores.argmax(1) != targets.argmax(1)).float()


def setup(task):
    return TrainingSetup(MLP(hidden=(4,)), TinyTargets().load(), LocalTraining(batch_size=30), seed=2, task=task)


@pytest.mark.parametrize("kind", [Contrast, Centred, Scaled, Sized])
def test_a_loss_that_sees_its_batch_is_not_stacked(kind):
    with pytest.raises(FedsimError, match=f"learning.task: losses of {kind.__name__} depend on the other samples"):
        ExecutorChoice("stacked").build(setup(kind()))


@pytest.mark.parametrize("kind", [Regression, Absolute])
def test_a_loss_of_each_sample_is_stacked(kind):
    assert np.isfinite(ExecutorChoice("stacked").build(setup(kind())).max_batch)


def test_what_is_tried_draws_from_no_global_generator():
    before = torch.get_rng_state()
    ExecutorChoice("stacked").build(setup(Absolute()))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
@pytest.mark.parametrize("kind", [Detached, Counted])
def test_a_loss_without_a_gradient_is_refused(kind, executor):
    table = {"data": TinyTargets(), "model": {"hidden": [4]}, "task": kind()}
    with pytest.raises(PartError, match=f"{kind.__name__}.losses returned losses without a gradient"):
        Supervised.model_validate(table).build(4, Streams(0), executor=ExecutorChoice(executor))
