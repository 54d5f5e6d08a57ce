"""Which rows of data without a division of their own are for testing."""

import numpy as np
import pytest

from fedsim import simulate
from fedsim.errors import DataError, ScenarioError
from fedsim.learning import Division, dataset_of
from tests.support.short_runs import of_learning


def test_rows_are_drawn_by_the_seed_and_in_proportion_to_labels():
    y = np.repeat([0, 1, 2, 3], [100, 50, 7, 1])
    x = np.arange(y.size, dtype=np.float32)
    one, same, other = (dataset_of((x, y), seed=seed) for seed in (3, 3, 4))
    assert one.digest == same.digest != other.digest
    assert sorted([*one.train_x[:, 0], *one.test_x[:, 0]]) == x.tolist()
    # A fifth of 158 is 32: of 20.25, 10.13, 1.42 and 0.20 the whole parts, and the largest remainder; one row stays.
    assert np.bincount(one.test_y, minlength=4).tolist() == [20, 10, 2, 0]
    few = [Division(share=0.5).test_rows(4, np.array([0, 0, 0, 1]), None, np.random.default_rng(i)) for i in range(20)]
    assert not np.any(few, axis=0)[3], "the only row of a label is for training"
    assert one.notes == (
        "32 of 158 rows are for testing: drawn by the seed, of each label in proportion; of 4 labels clients have 4, "
        "the test set 3, and both 3",
    )
    assert np.bincount(dataset_of((x, np.arange(158) % 2)).test_y).tolist() == [16, 16], "labels in turn as well"


def test_each_row_is_for_testing_as_often_as_any_other():
    drawn = [dataset_of((np.arange(10.0), np.arange(10.0)), seed=seed).test_y[:, 0] for seed in range(500)]
    counts = np.bincount(np.concatenate(drawn).astype(int), minlength=10)
    assert np.abs(counts - 100).max() < 5 * np.sqrt(500 * 0.2 * 0.8)


@pytest.mark.parametrize(("rows", "wanted"), [("first", [0, 1, 2]), ("last", [7, 8, 9])])
def test_data_with_an_order_have_their_first_or_last_rows_for_testing(rows, wanted):
    table = {"rows": rows, "share": 0.3}
    x = np.arange(10.0)
    assert dataset_of((x, x), division=Division(**table)).test_y[:, 0].tolist() == wanted
    learning = {"data": (np.stack([x, x], 1), x), "task": "regression", "model": "logistic-regression", "test": table}
    made = of_learning(learning, clients=2, cohort=None, rounds=1)
    assert simulate(made, store=False).notes == [f"learning.data: 3 of 10 rows are for testing: the {rows} ones"]
    assert made.describe()["learning"]["test"] == {**table, "whole_users": True}


def test_users_are_whole_in_one_of_the_two_sets():
    users = np.array(["ann", "bob", "cy", "dee", "eve"] * 8)
    x, y = np.arange(40.0), np.arange(40) % 2
    data = dataset_of((x, y, users))
    tested = {users[int(row)] for row in data.test_x[:, 0]}
    assert len(tested) == 1
    assert data.test_y.size == 8
    assert not tested & {users[int(row)] for row in data.train_x[:, 0]}
    assert np.unique(data.train_users).tolist() == [0, 1, 2, 3]
    mixed = dataset_of((x, y, users), division=Division(whole_users=False))
    assert np.unique(mixed.train_users).size == 5
    natural = {"data": (np.stack([x, x], 1), y, users), "split": "natural", "model": "logistic-regression"}
    history = simulate(of_learning(natural, clients=4, cohort=None, rounds=1), store=False)
    assert "those of users drawn by the seed" in history.notes[0]
    assert "4 users have rows for training" in history.notes[0]
    with pytest.raises(DataError, match="all rows belong to one user; allowed: several users, or"):
        dataset_of((x, y, np.zeros(40, int)))


def test_a_division_of_data_that_have_one_is_refused():
    with pytest.raises(ScenarioError, match=r"test: is not allowed with data = 'digits', which has a division"):
        of_learning({"data": "digits", "test": {"rows": "last"}})
    four = (np.ones((4, 2)), np.arange(4), np.ones((2, 2)), np.arange(2))
    with pytest.raises(DataError, match="has a division of its own"):
        simulate(of_learning({"data": four, "test": {"rows": "last"}}), store=False)


def test_labels_that_no_client_has_are_noted():
    x = np.random.default_rng(0).normal(size=(20, 3))
    given = (x[:12], np.arange(12) % 2, x[12:], np.arange(8) % 4)
    history = simulate(of_learning({"data": given, "model": "logistic-regression"}, rounds=1), store=False)
    assert history.notes == ["learning.data: of 4 labels clients have 2, the test set 4, and both 2"]
