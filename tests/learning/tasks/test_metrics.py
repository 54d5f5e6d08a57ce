"""Losses and metrics against scikit-learn and against formulas in NumPy, in pieces and at once."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from sklearn.metrics import accuracy_score, f1_score, top_k_accuracy_score

from fedsim.errors import DataError
from fedsim.learning import METRICS, TASKS, Dataset
from fedsim.learning.tasks.scores import Scores
from tests.support.literal_rounds import losses_of

RNG = np.random.default_rng(3)
LABELS, TEXTS = RNG.integers(0, 4, 30), RNG.integers(0, 5, (30, 6))
OF_CLASSES, OF_TEXTS = (RNG.normal(size=shape).astype(np.float32) for shape in ((30, 4), (30, 6, 5)))


def pieces_of(task, scores, targets, outputs, cuts=(7, 19)):
    """Return the evaluation of a task from sums over three pieces."""
    metrics = [metric.bound(task) for metric in task.metrics]
    totals = 0
    for piece in zip(np.split(scores, cuts), np.split(targets, cuts), strict=True):
        said, true = map(torch.from_numpy, piece)
        parts = [task.losses(said, true)[:, None], *(metric.sums(said, true) for metric in metrics)]
        totals = totals + torch.cat(parts, dim=1).double().sum(0).numpy()
    return Scores(task, outputs).evaluation(totals, len(targets))


def loss_of(task, scores, targets):
    """Return the mean of torch's own losses, each of what counts of a sample."""
    return losses_of(task, torch.from_numpy(scores).double(), torch.from_numpy(targets)).mean().item()


def test_classification_agrees_with_scikit_learn():
    task = TASKS.make({"kind": "classification", "metrics": ["accuracy", "macro-f1", {"kind": "top-k", "k": 2}]})
    found = pieces_of(task, OF_CLASSES, LABELS, 4)
    said = OF_CLASSES.argmax(1)
    assert found.accuracy == accuracy_score(LABELS, said)
    assert found.metrics["macro-f1"] == pytest.approx(f1_score(LABELS, said, average="macro"), abs=1e-12)
    assert found.metrics["top-2"] == pytest.approx(top_k_accuracy_score(LABELS, OF_CLASSES, k=2), abs=1e-12)
    assert found.loss == pytest.approx(loss_of({"kind": "classification"}, OF_CLASSES, LABELS), rel=1e-6)
    # Of equal scores the first count as higher, as of the highest one: a model that tells nothing is not always right.
    ranks = [
        float(METRICS.make({"kind": "top-k", "k": k}).sums(torch.zeros(4, 4), torch.arange(4)).sum()) for k in (1, 3)
    ]
    assert ranks == [1.0, 3.0]
    assert not METRICS.make("top-k").sums(torch.full((1, 9), torch.nan), torch.zeros(1, dtype=torch.int64)).any()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12))
def test_macro_f1_leaves_out_labels_that_nothing_has(pairs):
    true, said = np.array(pairs).T
    scores = torch.nn.functional.one_hot(torch.from_numpy(said), 6).float()
    metric = METRICS.make("macro-f1")
    sums = metric.sums(scores, torch.from_numpy(true)).double().sum(0).numpy()
    assert metric.value(sums, len(pairs)) == pytest.approx(f1_score(true, said, average="macro"), abs=1e-12)


@pytest.mark.parametrize("padding", [0, 3, -100, -1, None, "none"])
def test_next_tokens_count_but_those_that_are_ignored(padding):
    texts, scores = TEXTS, OF_TEXTS.copy()
    if padding in (-100, -1):  # no token
        texts = np.where(np.random.default_rng(4).random(TEXTS.shape) < 0.4, padding, TEXTS)
        texts[0] = padding
    if padding == 0:  # which a model may rule out
        scores[..., 0] = -np.inf
    found = pieces_of(TASKS.make({"kind": "next-token", "ignore": padding}), scores, texts, 5)
    ignored = [] if padding in (None, "none") else [padding]
    assert found.loss == pytest.approx(loss_of({"kind": "next-token", "ignore": ignored}, scores, texts), rel=1e-6)
    real = np.isin(texts, ignored, invert=True)
    assert found.accuracy == pytest.approx((scores.argmax(2) == texts)[real].mean(), abs=1e-12)
    together = loss_of({"kind": "next-token"}, scores[real], texts[real])
    assert found.metrics["perplexity"] == pytest.approx(np.exp(together), rel=1e-6)


@pytest.mark.parametrize(
    ("places", "ignore"), [((), []), ((5,), []), ((5,), [255])], ids=["a set", "at each place", "padding"]
)
def test_sets_of_labels_agree_with_scikit_learn_and_padding_counts_for_nothing(places, ignore):
    scores = RNG.normal(size=(30, *places, 4)).astype(np.float32)
    targets = RNG.integers(0, 2, scores.shape).astype(np.uint8)
    if ignore:
        targets[np.arange(5) >= RNG.integers(1, 6, 30)[:, None]] = 255
        targets[3], targets[5, 0, 1] = 255, 255
    real, said = targets != 255, scores > 0
    task = {"kind": "multi-label", "ignore": ignore}
    found = pieces_of(TASKS.make(task), scores, targets, 4)
    assert found.loss == pytest.approx(loss_of(task, scores, targets), rel=1e-6)
    sets = np.ndindex(30, *places)
    right = [all(said[at][known] == (targets[at] == 1)[known]) for at in sets if (known := real[at]).any()]
    assert found.accuracy == pytest.approx(np.mean(right), abs=1e-6)
    assert found.metrics["micro-f1"] == pytest.approx(f1_score((targets == 1)[real], said[real]), abs=1e-12)
    of_labels = [f1_score((targets == 1)[..., k][real[..., k]], said[..., k][real[..., k]]) for k in range(4)]
    assert found.metrics["macro-f1"] == pytest.approx(np.mean(of_labels), abs=1e-12)


@pytest.mark.parametrize("padding", [None, -7.5, 0.1, 1e12])
@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_losses_of_regression_are_their_formulas_and_padding_counts_for_nothing(padding, loss):
    scores = RNG.normal(size=(30, 5, 2)).astype(np.float32)
    ends = np.arange(5) >= RNG.integers(1, 6, 30)[:, None]
    ends[:2] = True
    targets = RNG.normal(size=(30, 5, 2)).astype(np.float32)
    if padding is not None:
        targets[ends] = padding
        targets[7, 0, 1] = padding  # one of two numbers of a place
    real = targets != np.float32(np.nan if padding is None else padding)
    task = {"kind": "regression", "loss": loss, "ignore": [] if padding is None else [padding]}
    found = pieces_of(TASKS.make(task), 3 * scores, targets, 2)
    assert found.loss == pytest.approx(loss_of(task, 3 * scores, targets), rel=1e-6)
    error = (3 * scores.astype(float) - targets)[real]
    assert found.metrics["mean-squared-error"] == pytest.approx(np.square(error).mean(), rel=1e-6)
    assert found.metrics["mean-absolute-error"] == pytest.approx(np.abs(error).mean(), rel=1e-6)
    assert np.isnan(found.accuracy)


@pytest.mark.parametrize(("kind", "padding"), [("regression", -1.0), ("multi-label", 255), ("next-token", -100)])
def test_without_anything_that_counts_metrics_are_nan_and_the_loss_is_0(kind, padding):
    task = TASKS.make({"kind": kind, "ignore": padding})
    dtype = {"regression": np.float32, "multi-label": np.uint8, "next-token": np.int64}[kind]
    targets = np.full((30, 6) if kind == "next-token" else (30, 6, 5), padding, dtype=dtype)
    found = pieces_of(task, OF_TEXTS, targets, 5)
    assert found.loss == 0.0
    assert np.isnan(list(found.metrics.values())).all()


@pytest.mark.parametrize(
    ("task", "targets", "words"),
    [
        (
            {"kind": "multi-label", "ignore": 7},
            np.array([[0, 3], [1, 7]], np.uint8),
            r"0 and 1, and those of ignore = \[7\]; found 3",
        ),
        ("multi-label", np.array([[0, 255], [1, 1]], np.uint8), r"those of ignore = \[\]; found 255"),
        (
            {"kind": "next-token", "ignore": -100},
            np.array([[2, -1], [1, -100]]),
            r"or those of ignore = \[-100\]; found -1",
        ),
        ({"kind": "next-token", "ignore": None}, np.array([[2, 2], [1, -1]]), r"or those of ignore = \[\]; found -1"),
    ],
)
def test_targets_that_are_neither_answers_nor_ignored_are_refused(task, targets, words):
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(DataError, match=words):
        TASKS.make(task).outputs(Dataset(x, targets, x, targets.copy()))


@pytest.mark.parametrize("kind", ["regression", "multi-label", "next-token"])
def test_a_task_that_is_written_down_ignores_the_same_again(kind):
    for padding in {"regression": (None, -1.0), "multi-label": (None, 9), "next-token": (None, 0, [0, -100])}[kind]:
        task = TASKS.make({"kind": kind, "ignore": padding})
        assert TASKS.make(TASKS.describe(task)) == task


def test_a_task_that_ignores_nothing_does_not_say_so():
    task = TASKS.make({"kind": "regression", "metrics": ["mean-squared-error"]})
    assert task.model_dump_json() == '{"metrics":[{"kind":"mean-squared-error"}],"loss":"squared"}'


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
