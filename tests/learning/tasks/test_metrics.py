"""Losses and metrics against scikit-learn and against formulas in NumPy, in pieces and at once."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    top_k_accuracy_score,
)

from fedsim.learning import METRICS, TASKS
from fedsim.learning.tasks.scores import Scores

RNG = np.random.default_rng(3)
LABELS, TEXTS, SETS = RNG.integers(0, 4, 30), RNG.integers(0, 5, (30, 6)), RNG.integers(0, 2, (30, 4))
OF_CLASSES, OF_TEXTS = (RNG.normal(size=shape).astype(np.float32) for shape in ((30, 4), (30, 6, 5)))
NUMBERS = RNG.normal(size=(30, 4)).astype(np.float32)


def pieces_of(task, scores, targets, outputs, cuts=(7, 19)):
    """Return the evaluation of a task from sums over three pieces."""
    metrics = [metric.bound(task) for metric in task.metrics]
    totals = 0
    for piece in zip(np.split(scores, cuts), np.split(targets, cuts), strict=True):
        said, true = map(torch.from_numpy, piece)
        parts = [task.losses(said, true)[:, None], *(metric.sums(said, true) for metric in metrics)]
        totals = totals + torch.cat(parts, dim=1).double().sum(0).numpy()
    return Scores(task, outputs).evaluation(totals, len(targets))


def log_softmax(scores):
    shifted = scores - scores.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def test_classification_agrees_with_scikit_learn():
    task = TASKS.make({"kind": "classification", "metrics": ["accuracy", "macro-f1", {"kind": "top-k", "k": 2}]})
    found = pieces_of(task, OF_CLASSES, LABELS, 4)
    said = OF_CLASSES.argmax(1)
    assert found.accuracy == accuracy_score(LABELS, said)
    assert found.metrics["macro-f1"] == pytest.approx(f1_score(LABELS, said, average="macro"), abs=1e-12)
    assert found.metrics["top-2"] == pytest.approx(top_k_accuracy_score(LABELS, OF_CLASSES, k=2), abs=1e-12)
    assert found.loss == pytest.approx(log_loss(LABELS, np.exp(log_softmax(OF_CLASSES.astype(float)))), rel=1e-6)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12))
def test_macro_f1_leaves_out_labels_that_nothing_has(pairs):
    true, said = np.array(pairs).T
    scores = torch.nn.functional.one_hot(torch.from_numpy(said), 6).float()
    metric = METRICS.make("macro-f1")
    sums = metric.sums(scores, torch.from_numpy(true)).double().sum(0).numpy()
    assert metric.value(sums, len(pairs)) == pytest.approx(f1_score(true, said, average="macro"), abs=1e-12)


def test_regression_agrees_with_scikit_learn():
    task = TASKS.make("regression")
    found = pieces_of(task, OF_CLASSES, NUMBERS, 4)
    squared = mean_squared_error(NUMBERS, OF_CLASSES)
    assert found.metrics["mean-squared-error"] == pytest.approx(squared, rel=1e-6)
    assert found.metrics["mean-absolute-error"] == pytest.approx(mean_absolute_error(NUMBERS, OF_CLASSES), rel=1e-6)
    assert found.loss == pytest.approx(squared, rel=1e-6)
    assert np.isnan(found.accuracy)


@pytest.mark.parametrize(
    ("loss", "law"),
    [
        ("absolute", np.abs),
        ("huber", lambda error: np.where(np.abs(error) < 1, error**2 / 2, np.abs(error) - 0.5)),
    ],
)
def test_other_losses_of_regression_are_their_formulas(loss, law):
    task = TASKS.make({"kind": "regression", "loss": loss})
    found = task.losses(torch.from_numpy(3 * OF_CLASSES), torch.from_numpy(NUMBERS)).numpy()
    assert found == pytest.approx(law(3 * OF_CLASSES - NUMBERS).mean(1), rel=1e-6)


@pytest.mark.parametrize("padding", [0, 3])
def test_next_tokens_count_without_padding(padding):
    task = TASKS.make({"kind": "next-token", "padding": padding})
    found = pieces_of(task, OF_TEXTS, TEXTS, 5)
    negative = -np.take_along_axis(log_softmax(OF_TEXTS.astype(float)), TEXTS[:, :, None], 2)[:, :, 0]
    real = padding != TEXTS
    assert found.metrics["perplexity"] == pytest.approx(np.exp(negative[real].mean()), rel=1e-6)
    assert found.accuracy == pytest.approx((OF_TEXTS.argmax(2) == TEXTS)[real].mean(), abs=1e-12)
    each = [row[kept].mean() if kept.any() else 0.0 for row, kept in zip(negative, real, strict=True)]
    assert found.loss == pytest.approx(np.mean(each), rel=1e-6)


def test_sets_of_labels_agree_with_scikit_learn():
    task = TASKS.make("multi-label")
    found = pieces_of(task, OF_CLASSES, SETS.astype(np.uint8), 4)
    said = OF_CLASSES > 0
    assert found.accuracy == pytest.approx(accuracy_score(SETS, said), abs=1e-12)
    assert found.metrics["micro-f1"] == pytest.approx(f1_score(SETS, said, average="micro"), abs=1e-12)
    assert found.metrics["macro-f1"] == pytest.approx(f1_score(SETS, said, average="macro"), abs=1e-12)
    chance = 1 / (1 + np.exp(-OF_CLASSES.astype(float)))
    assert found.loss == pytest.approx(-np.mean(np.where(SETS, np.log(chance), np.log(1 - chance))), rel=1e-6)


def test_sums_of_clients_make_the_metrics_of_all_their_samples():
    """Two clients' evaluations, added up, are the evaluation of all samples: exactly, and no mean of the two."""
    task = TASKS.make({"kind": "classification", "metrics": ["accuracy", "macro-f1"]})
    one, other = (pieces_of(task, OF_CLASSES[at], LABELS[at], 4, ()) for at in (slice(8), slice(8, 30)))
    totals = np.array([0.0, *np.add(one.sums, other.sums)])
    together = Scores(task, 4).evaluation(totals, one.samples + other.samples)
    assert together.metrics["macro-f1"] == pytest.approx(
        f1_score(LABELS, OF_CLASSES.argmax(1), average="macro"), abs=1e-12
    )


@pytest.mark.parametrize("metrics", [["accuracy"], ["accuracy", "macro-f1"], []])
def test_a_record_of_the_store_is_the_evaluation_again(metrics):
    task = TASKS.make({"kind": "classification", "metrics": metrics})
    found, scores = pieces_of(task, OF_CLASSES, LABELS, 4), Scores(task, 4)
    again = scores.of_record(scores.record(found), 30)
    assert (again.loss, again.metrics, again.sums, again.samples) == (found.loss, found.metrics, found.sums, 30)
