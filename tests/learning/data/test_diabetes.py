"""The diabetes set: its division, its units, and a regression that is known in closed form."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from fedsim import simulate
from fedsim.learning.data.diabetes import Diabetes
from tests.support.short_runs import of_learning


def test_every_fifth_patient_tests_and_the_others_have_mean_0_and_variance_1():
    numbers, progress = load_diabetes(return_X_y=True, scaled=False)
    data = Diabetes().load()
    assert (data.classes, data.labels, data.form) == (None, None, "numbers")
    for found, column in ((data.train_x, numbers), (data.train_y, progress[:, None])):
        # Numbers of float32, added up in float64.
        np.testing.assert_allclose(found.mean(axis=0, dtype=np.float64), 0.0, atol=1e-6)
        np.testing.assert_allclose(found.std(axis=0, dtype=np.float64), 1.0, atol=1e-6)
        # A shift and a scale keep the ratios of differences.
        order = np.delete(np.arange(442), np.s_[::5])
        steps, given = np.diff(found, axis=0), np.diff(column[order], axis=0)
        np.testing.assert_allclose(steps * given.std(axis=0), given * steps.std(axis=0), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(
        np.diff(data.test_y[:, 0]), np.diff(progress[::5]) / np.delete(progress, np.s_[::5]).std(), atol=1e-5
    )
    assert len(Diabetes(train_limit=7).load().train_y) == 7


def test_a_linear_model_learns_what_least_squares_find():
    """With all clients, whole batches and equal shares a round is a step of gradient descent on the mean loss."""
    data = Diabetes().load()
    exact = LinearRegression().fit(data.train_x[:350], data.train_y[:350])
    error = float(((exact.predict(data.test_x) - data.test_y) ** 2).mean())
    learning = {
        "task": "regression",
        "data": {"kind": "diabetes", "train_limit": 350},
        "model": {"kind": "mlp", "hidden": []},
        "local": {"learning_rate": 0.2, "batch_size": 175},
    }
    scenario = of_learning(learning, clients=2, rounds=400, cohort=None, results={"evaluate_every": 100})
    history = simulate(scenario, store=False, executor="sequential")
    found = history.curve("round", "mean-squared-error")[1]
    # Serum numbers are nearly collinear, so that the last digits take thousands of steps.
    np.testing.assert_allclose(found[-1], error, rtol=0.01)
    assert found[0] > 1.5 * found[-1]
