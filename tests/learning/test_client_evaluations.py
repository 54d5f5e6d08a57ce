"""Metrics of each client, the mean over clients, and what a store has of them."""

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from fedsim.learning import MemoryStore
from tests.support.asking import next_model

LOCAL = {"epochs": 3, "batch_size": 5, "learning_rate": 0.3}


def answers(learner, vector, client):
    """Return the scores of the perceptron 16-5-3 for a client's samples, by its formula, and the labels."""
    data, rows = learner._setup.data, learner._tests().rows[client]
    samples, targets = data.taken(rows)
    images = torch.tensor(samples.reshape(rows.size, 16) / data.pixel_max * 2 - 1)
    weights, labels = torch.tensor(vector, dtype=torch.float64), torch.tensor(targets)
    hidden = torch.relu(images @ weights[:80].view(5, 16).T + weights[80:85])
    return hidden @ weights[85:100].view(3, 5).T + weights[100:], labels


def test_metrics_of_the_task_are_those_of_each_client(make_learner):
    """scikit-learn's macro-F1 over each client's answers; found in a store, it is the same."""
    store = MemoryStore()
    task = {"kind": "classification", "metrics": ["accuracy", "macro-f1"]}
    learner, again = (make_learner(local=LOCAL, task=task, store=store) for _ in range(2))
    model = next_model(learner, learner.initial(), [0, 1])
    found = learner.evaluate_clients(model)
    expected = []
    for client in range(6):
        given, labels = answers(learner, learner.vector(model), client)
        expected.append(f1_score(labels, given.argmax(1), average="macro"))
    np.testing.assert_allclose(found.metrics["macro-f1"], expected)
    assert np.array_equal(found.metrics["accuracy"], found.accuracy)
    learner.flush()
    second = again.evaluate_clients(next_model(again, again.initial(), [0, 1]))
    assert (learner.work.probed, learner.work.probes_found) == (6, 0)
    assert (again.work.trained, again.work.probed, again.work.probes_found) == (0, 0, 6)
    np.testing.assert_allclose(second.metrics["macro-f1"], expected)
    assert np.array_equal(second.loss, found.loss)


def test_a_personal_model_is_judged_by_its_clients_mean(make_learner):
    """Headline and quantiles are those of the clients' own models, each client counted once."""
    learner = make_learner(algorithm="fedper", local=LOCAL)
    model = next_model(learner, learner.initial(), [0, 1, 2])
    of_clients, headline = learner.evaluate_clients(model), learner.evaluate(model)
    assert (of_clients.own, headline.own) == (True, True)
    assert headline.accuracy == pytest.approx(of_clients.accuracy.mean())
    assert headline.loss == pytest.approx(of_clients.loss.mean())
    assert headline.metrics["accuracy-p50"] == pytest.approx(np.median(of_clients.accuracy))
    assert headline.metrics["accuracy-worst-tenth"] == of_clients.accuracy.min()  # a tenth of six clients is one


def test_layers_that_only_a_training_knows_are_worked_out_again(make_learner):
    """Of a run before, the store has the model, and neither the states nor the scores of clients."""

    class ModelsAlone(MemoryStore):
        def put_arrays(self, digest, arrays):
            if "vector" in arrays:
                super().put_arrays(digest, arrays)

    store = ModelsAlone()
    first, again = (make_learner(algorithm="fedper", local=LOCAL, store=store) for _ in range(2))
    models = [next_model(one, one.initial(), [0, 1]) for one in (first, again)]
    first.export(models[0])
    first.flush()
    assert np.array_equal(again.vector(models[1]), first.vector(models[0]))
    assert again.work.trained == 0
    found = again.evaluate_clients(models[1])
    assert again.work.trained == 2
    assert np.array_equal(found.loss, first.evaluate_clients(models[0]).loss)
