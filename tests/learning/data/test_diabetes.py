"""The diabetes set: its division, its units, and a regression that is known in closed form."""

import numpy as np
from sklearn.datasets import load_diabetes

from fedsim.learning.data.diabetes import Diabetes


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
