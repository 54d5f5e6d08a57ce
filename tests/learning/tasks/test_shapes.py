"""Scores of another shape than the targets, which torch would stretch to each other."""

import numpy as np
import pytest
import torch
from torch import nn

from fedsim import simulate
from fedsim.errors import ScenarioError
from fedsim.learning import METRICS, TASKS
from tests.support.short_runs import of_learning

X = np.random.default_rng(4).normal(size=(30, 4)).astype(np.float32)
TEXTS = np.random.default_rng(4).integers(0, 5, (30, 6))


class Shaped(nn.Module):
    def __init__(self, numbers, *shape):
        super().__init__()
        self.layer, self.shape = nn.Linear(4, numbers), shape

    def forward(self, x):
        return self.layer(x).reshape(len(x), *self.shape)


class Together(nn.Linear):
    """Gives one row of scores for all samples of a batch, which for one sample is as it should be."""

    def forward(self, x):
        return super().forward(x).mean(0, keepdim=True)


def tried(task, data, model):
    return simulate(of_learning({"task": task, "data": data, "model": model}, clients=3), store=False)


@pytest.mark.parametrize(
    ("task", "targets", "model", "said", "true"),
    [
        ("regression", X[:, :1], Shaped(1), r"\(n\)", r"\(n, 1\)"),
        ("regression", X[:, :1], nn.Linear(4, 7), r"\(n, 7\)", r"\(n, 1\)"),
        ("regression", X[:, :3], Shaped(6, 2, 3), r"\(n, 2, 3\)", r"\(n, 3\)"),
        ("regression", X.reshape(30, 2, 2), nn.Linear(4, 2), r"\(n, 2\)", r"\(n, 2, 2\)"),
        ("multi-label", X[:, :3] > 0, Shaped(6, 2, 3), r"\(n, 2, 3\)", r"\(n, 3\)"),
    ],
)
def test_scores_that_are_not_of_the_shape_of_targets_are_refused_before_the_work(task, targets, model, said, true):
    words = rf"'{task}' does not fit learning.model.*scores of shape {said} and targets of shape {true}; allowed"
    with pytest.raises(ScenarioError, match=words):
        tried(task, (X, targets), model)


def test_one_row_for_two_samples_is_refused_before_the_work():
    with pytest.raises(ScenarioError, match=r"does not fit .*targets of shape \(n, 2\), of 1 and 2 samples; allowed"):
        tried("regression", (X, X[:, :2]), Together(4, 2))


@pytest.mark.parametrize("places", [1, 5])
def test_fewer_targets_than_places_are_refused(places):
    words = rf"'next-token' does not fit .*scores of shape \(n, 6, 5\) and targets of shape \(n, {places}\); allowed"
    with pytest.raises(ScenarioError, match=words):
        tried("next-token", (TEXTS, TEXTS[:, -places:]), nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5)))


@pytest.mark.parametrize(
    ("kinds", "scores", "targets"),
    [
        (["mean-squared-error", "mean-absolute-error"], torch.zeros(3), torch.zeros(3, 1)),
        (["subset-accuracy", "micro-f1-of-sets", "macro-f1-of-sets"], torch.zeros(3, 2, 4), torch.zeros(3, 4)),
        (["token-accuracy", "perplexity"], torch.zeros(3, 4, 5), torch.zeros(3, 1, dtype=torch.int64)),
    ],
)
def test_metrics_refuse_them_too(kinds, scores, targets):
    """Those of a task of the user's own have no loss of fedsim's beside them."""
    for kind in kinds:
        with pytest.raises(ValueError, match="allowed: scores of the shape of the targets"):
            METRICS.make(kind).sums(scores, targets)


def test_shapes_that_fit_are_learned():
    history = tried("regression", (X, X[:, :1]), Shaped(1, 1))
    assert np.isfinite(history.curve("round", "loss")[1]).all()
    assert TASKS.make("regression").losses(torch.zeros(2, 3, 4), torch.ones(2, 3, 4)).tolist() == [1.0, 1.0]
