"""A model on each client's samples, against a plain loop of PyTorch over the clients, also with layers of their own."""

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from fedsim.learning import MemoryStore, TrainingJob
from tests.support.asking import next_model

LOCAL = {"epochs": 3, "batch_size": 5, "learning_rate": 0.3}
SHARED = 16 * 5 + 5  # of the perceptron 16-5-3


def answers(learner, vector, client):
    """Return the scores of the perceptron 16-5-3 for a client's samples, by its formula, and the labels."""
    data, rows = learner._setup.data, learner._tests().rows[client]
    samples, targets = data.taken(rows)
    images = torch.tensor(samples.reshape(rows.size, 16) / data.pixel_max * 2 - 1)
    weights, labels = torch.tensor(vector, dtype=torch.float64), torch.tensor(targets)
    hidden = torch.relu(images @ weights[:80].view(5, 16).T + weights[80:85])
    return hidden @ weights[85:100].view(3, 5).T + weights[100:], labels


def scores(learner, vector, client):
    """Return accuracy and mean loss."""
    found, labels = answers(learner, vector, client)
    return float((found.argmax(1) == labels).double().mean()), float(torch.nn.functional.cross_entropy(found, labels))


def check(learner, found, vectors):
    expected = np.array([scores(learner, vector, client) for client, vector in enumerate(vectors)])
    np.testing.assert_allclose(found.accuracy, expected[:, 0])
    np.testing.assert_allclose(found.loss, expected[:, 1], rtol=1e-5)


def test_each_client_has_the_scores_of_the_servers_model_on_its_own_samples(make_learner):
    learner = make_learner(local=LOCAL)
    model = next_model(learner, learner.initial(), [0, 1])
    for one in (learner.initial(), model):
        check(learner, learner.evaluate_clients(one), [learner.vector(one)] * 6)


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


def test_clients_without_samples_have_no_scores(make_learner):
    split = {"kind": "sizes", "samples": [8, 0, 8]}
    learner = make_learner(clients=3, split=split, local=LOCAL, allow_empty=True)
    found = learner.evaluate_clients(learner.initial())
    assert np.isnan(found.accuracy).tolist() == np.isnan(found.loss).tolist() == [False, True, False]


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


def personal_models(learner, cohorts):
    """Return the last model of a learner with FedPer, and each client's own: its last layer as its trainings left it.

    The layers are followed from the differences of the trainings, which are those of whole models.
    """
    model = learner.initial()
    last = [learner.vector(model)[SHARED:] for _ in range(6)]
    for cohort in cohorts:
        base = learner.vector(model)
        model = next_model(learner, model, cohort)
        learner.vector(model)
        for client in cohort:
            last[client] = trained_alone(learner, np.concatenate([base[:SHARED], last[client]]), client, model.version)
    shared = learner.vector(model)[:SHARED]
    return model, [np.concatenate([shared, own]).astype(np.float32) for own in last]


def trained_alone(learner, start, client, version):
    """Return the last layer after a training of a client that starts from a whole model."""
    rng = learner._computation._draws._streams.generator("training", client, version - 1)
    job = TrainingJob(start.astype(np.float32), learner._rows[client], 1.0, rng)
    (found,) = learner._computation.executor.train([job])
    return (start + found.difference)[SHARED:]


def test_with_personal_layers_each_client_has_its_own(make_learner):
    """Clients 4 and 5 never train, and have the layers of the first model; client 0 trains twice."""
    learner = make_learner(algorithm="fedper", local=LOCAL)
    model, vectors = personal_models(learner, [[0, 1, 2], [0, 3]])
    found = learner.evaluate_clients(model)
    expected = np.array([scores(learner, vector, client) for client, vector in enumerate(vectors)])
    np.testing.assert_allclose(found.loss, expected[:, 1], rtol=1e-3)
    shared = [scores(learner, learner.vector(model), client)[1] for client in range(6)]
    assert found.loss[4:].tolist() == pytest.approx(shared[4:], rel=1e-5)
    assert (np.abs(found.loss[:4] - shared[:4]) > 1e-2).all(), "the server's own layers were never trained"


def test_an_evaluation_is_that_of_the_layers_at_its_time(make_learner):
    """What clients keep later, before anything was computed, changes nothing of it."""
    early, late = (make_learner(algorithm="fedper", local=LOCAL) for _ in range(2))
    models = [next_model(one, one.initial(), [0, 1]) for one in (early, late)]
    expected = early.evaluate_clients(models[0])
    later = next_model(late, models[1], [0, 1])
    assert not np.array_equal(late.evaluate_clients(later).loss, expected.loss)


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
