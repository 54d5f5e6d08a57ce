"""Each task gives the same models and metrics under every executor, and those of a plain loop."""

import numpy as np
import pytest
import torch

from fedsim import simulate
from fedsim.errors import DataError, FedsimError, ScenarioError
from fedsim.learning import (
    Division,
    dataset_of,
)
from tests.support.short_runs import of_learning
from tests.support.tiny_targets import EachPlace, TinyTargets

KINDS = {"classification": "labels", "regression": "numbers", "next-token": "tokens", "multi-label": "label-sets"}
BOTH = ("sequential", "stacked")


def scenario(kind, rounds=3, **more):
    learning = {
        "task": {"kind": kind},
        "data": TinyTargets(of=KINDS[kind]),
        "model": EachPlace() if kind == "next-token" else {"kind": "mlp", "hidden": [8]},
        "local": {"learning_rate": 0.5 if kind == "next-token" else 0.1, "epochs": 2, "batch_size": 7},
        **more,
    }
    return of_learning(learning, rounds=rounds, cohort=3)


@pytest.mark.parametrize("kind", KINDS)
def test_executors_agree(kind):
    wanted = simulate(scenario(kind), executor="sequential").evaluations
    metrics = [dict(row) for row in wanted.column("metrics").to_pylist() if row is not None]
    assert len(metrics) == (0 if kind == "classification" else 4)  # one at time 0, three after rounds
    if kind == "regression":
        assert wanted.column("accuracy").null_count == 4
    for executor, near in (("processes", 0.0), ("stacked", 1e-5)):
        found = simulate(scenario(kind), executor=executor).evaluations
        assert found.column("loss").to_numpy() == pytest.approx(wanted.column("loss").to_numpy(), rel=near, abs=0)
        others = [dict(row) for row in found.column("metrics").to_pylist() if row is not None]
        for one, other in zip(metrics, others, strict=True):
            assert other == pytest.approx(one, rel=near, abs=1e-12)


def test_texts_of_several_lengths_are_learned_by_a_module_with_a_vector_for_each_of_their_tokens():
    rng = np.random.default_rng(5)
    texts = [np.array([8] * 5), *(rng.integers(0, 9, rng.integers(1, 6)) for _ in range(30))]

    class Next(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scores = torch.nn.Embedding(9, 9)

        def forward(self, tokens):
            return self.scores(tokens)

    learning = {"data": (texts, texts), "task": "next-token", "model": Next(), "test": {"rows": "first"}}
    history = simulate(of_learning(learning, rounds=1), executor="sequential", store=False)
    table = learning["model"].scores.weight.detach()
    true = torch.from_numpy(np.concatenate(texts[:6]))
    wanted = (table[true].argmax(1) == true).float().mean().item()
    assert history.curve("round", "accuracy")[1][0] == pytest.approx(wanted, abs=1e-6)
    assert "token 0 fills texts up and is one of theirs" in history.notes[-1]


@pytest.mark.parametrize("fill", [None, -9])
@pytest.mark.parametrize("kind", ["regression", "multi-label", "next-token"])
def test_sequences_of_several_lengths_are_judged_without_what_fills_them_up(kind, fill):
    """The loss before the first round is that of sequence after sequence, none of them filled up; a target may be 0."""
    if kind == "multi-label":
        fill = fill and 7
    rng = np.random.default_rng(6)
    lengths = rng.integers(1, 8, 60)
    x = [rng.normal(size=(length, 3)) for length in lengths]
    y = [
        {"regression": row[:, :2].round(), "multi-label": row[:, :2] > 0, "next-token": (row[:, 0] > 0).astype(int)}[
            kind
        ]
        for row in x
    ]
    model = torch.nn.Linear(3, 2)
    data = dataset_of((x, y), target_fill=fill, division=Division(rows="first"))
    learning = {"task": kind, "data": data, "model": model}
    made = of_learning(learning, rounds=2, cohort=3)
    found, stacked = (simulate(made, executor=one, store=False).curve("round", "loss")[1] for one in BOTH)
    losses = {
        "regression": torch.nn.functional.mse_loss,
        "multi-label": torch.nn.functional.binary_cross_entropy_with_logits,
        "next-token": torch.nn.functional.cross_entropy,
    }
    wanted = [
        losses[kind](
            model(torch.tensor(row, dtype=torch.float32)),
            torch.tensor(true, dtype=torch.int64 if kind == "next-token" else torch.float32),
        ).item()
        for row, true in zip(x[:12], y[:12], strict=True)
    ]
    assert found[0] == pytest.approx(np.mean(wanted), rel=1e-5)
    assert found[2] < found[0]
    assert stacked == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize(
    ("task", "data", "words"),
    [
        ("regression", "labels", r"'regression' needs targets of float32 .* int64 of shape \(n\), labels of 3 classes"),
        ("classification", "numbers", "'classification' needs a label for each sample"),
        ("next-token", "numbers", "'next-token' needs targets of int64"),
        ("multi-label", "numbers", "'multi-label' needs targets of uint8"),
        ({"kind": "classification", "shift": 2}, "labels", "flip and shift move images, and these samples are numbers"),
    ],
)
def test_targets_of_another_task_are_refused(task, data, words):
    with pytest.raises(DataError, match=words):
        simulate(scenario("classification", task=task, data=TinyTargets(of=data)), executor="sequential")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"split": {"kind": "dirichlet", "alpha": 1.0}},
            "it needs samples with labels, and learning.task = 'regression'",
        ),
        ({"task": {"kind": "regression", "metrics": ["macro-f1"]}}, "'macro-f1' counts labels, and the targets"),
        ({"task": {"kind": "regression", "metrics": 2 * ["mean-squared-error"]}}, "must be that of one metric"),
    ],
)
def test_what_does_not_go_with_a_task_is_refused(more, words):
    with pytest.raises(ScenarioError, match=words):
        simulate(scenario("regression", **more), executor="sequential")


def test_selectors_that_ask_for_labels_and_targets_that_no_evaluation_has_are_refused():
    plain = scenario("regression")
    with pytest.raises(ScenarioError, match=r"selector: 'haccs' is not allowed; it needs samples with labels"):
        plain.replace({"selector": {"kind": "haccs", "cohort": 2}})
    with pytest.raises(ScenarioError, match=r"rounds.target_accuracy.*a target of loss, mean-squared-error"):
        plain.replace({"rounds.target_accuracy": 0.5})
    with pytest.raises(ScenarioError, match="must be one of them"):
        plain.replace({"rounds.target": {"metric": "loss"}})


def test_a_run_ends_with_the_metric_that_it_aims_at():
    losses = simulate(scenario("regression"), executor="sequential").evaluations.column("loss").to_pylist()
    ending = scenario("regression").replace({"rounds.target": {"metric": "mean-squared-error", "at_most": losses[2]}})
    assert simulate(ending, executor="sequential").rounds.num_rows == 2


def test_images_are_moved_alike_by_sequential_and_processes_and_not_by_stacked():
    moving = scenario("classification", task={"flip": True, "shift": 1}, data={"kind": "digits", "train_limit": 80})
    one, other = (simulate(moving, executor=kind).evaluations for kind in ("sequential", "processes"))
    assert one.equals(other)
    still = simulate(moving.replace({"learning.task": {}}), executor="sequential").evaluations
    assert one.column("loss").to_pylist() != still.column("loss").to_pylist()
    with pytest.raises(
        FedsimError, match=r"learning.task: Classification makes batches .* 'sequential' and 'processes'"
    ):
        simulate(moving, executor="stacked")
