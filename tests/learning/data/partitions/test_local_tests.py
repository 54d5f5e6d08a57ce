"""Local test samples: held out, of the test set in proportion, or as a split says; no client shares one."""

import numpy as np
import pytest

from fedsim import simulate
from fedsim.learning.data.partitions.by_label import DirichletPartition
from fedsim.learning.data.partitions.local_tests import Divided
from fedsim.learning.data.partitions.sizes import EqualPartition, SizesPartition
from fedsim.results.summary import rows, summarise
from fedsim.streams import Streams
from tests.support.short_runs import of_learning
from tests.support.tiny_images import Tiny
from tests.support.tiny_targets import TinyTargets

DATA = Tiny().load()  # 96 samples for training, 96 for tests


def test_a_share_of_each_clients_samples_is_held_out():
    plain = Divided(SizesPartition(samples=[10, 2, 1]), DATA, 3, Streams(0)).rows
    divided = Divided(SizesPartition(samples=[10, 2, 1], test_share=0.3), DATA, 3, Streams(0))
    assert [part.size for part in divided.rows] == [7, 1, 1]
    assert divided.tests.samples.tolist() == [3, 1, 0]
    assert divided.tests.held_out
    assert "1 of 3 clients have no local test samples" in divided.tests.without
    for whole, kept, held in zip(plain, divided.rows, divided.tests.rows, strict=True):
        assert sorted([*kept, *held]) == sorted(whole)


def test_the_test_set_is_divided_like_the_training_set():
    """Of each label a client gets its share of the label's test samples, to within one."""
    divided = Divided(DirichletPartition(alpha=0.3), DATA, 5, Streams(1))
    tests = divided.tests
    assert np.unique(np.concatenate(tests.rows)).size == tests.samples.sum() == 96
    of_training = np.array([np.bincount(DATA.train_y[part], minlength=3) for part in divided.rows])
    of_tests = np.array([np.bincount(DATA.taken(part)[1], minlength=3) for part in tests.rows])
    wanted = of_training / of_training.sum(0) * np.bincount(DATA.test_y, minlength=3)
    assert np.abs(of_tests - wanted).max() <= 1.0
    assert not tests.held_out


def test_targets_that_are_no_labels_are_divided_by_sizes():
    data = TinyTargets(of="numbers").load()
    divided = Divided(SizesPartition(samples=[30, 10]), data, 2, Streams(0))
    few = len(data.test_y) / 4
    assert divided.tests.samples == pytest.approx([3 * few, few], abs=1)


class Odd(EqualPartition):
    def assign_tests(self, labels, classes, clients, streams):
        return [np.arange(client, 8, clients) for client in range(clients)]


def test_a_split_of_the_users_own_says_which_test_samples_are_whose():
    tests = Divided(Odd(), DATA, 2, Streams(0)).tests
    assert [(~part).tolist() for part in tests.rows] == [[0, 2, 4, 6], [1, 3, 5, 7]]


@pytest.mark.parametrize("executor", ["sequential", "stacked", pytest.param("processes", marks=pytest.mark.slow)])
def test_coin_flips_are_not_learned_on_samples_that_nobody_trains_on(executor):
    """On its training samples each client is right; on local test samples it guesses."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 30)).astype("float32"), rng.integers(0, 2, 400)
    learning = {
        "data": (x[:200], y[:200], x[200:], y[200:]),
        "model": {"kind": "mlp", "hidden": [64]},
        "algorithm": "fedper",
        "local": {"learning_rate": 0.5, "epochs": 3, "batch_size": 10},
    }
    for share in (0.0, 0.25):
        split = {"kind": "equal", "test_share": share}
        tables = {"rounds": 12, "cohort": None, "results": {"evaluate_clients": "last"}}
        history = simulate(of_learning({**learning, "split": split}, **tables), store=False, executor=executor)
        row = history.evaluations.to_pylist()[-1]
        assert 0.3 < row["accuracy"] < 0.7
        assert (row["model"], row["judged_on"]) == ("own", "held-out" if share else "part-of-test-set")
        lines = dict(rows(summarise(history)))
        whose = "samples that each holds out" if share else "its part of the test set"
        assert lines["accuracy is that of"] == f"the clients' own models, each on {whose}; mean over the clients"
        assert history.fairness().to_pylist()[-1]["mean"] == pytest.approx(row["accuracy"])
