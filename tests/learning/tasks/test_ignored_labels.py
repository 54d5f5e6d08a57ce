"""Labels that classification leaves out: as if their samples were not in the data."""

import numpy as np
import pytest

from fedsim import simulate
from fedsim.errors import DataError
from fedsim.learning.tasks.of_labels import Classification
from tests.support.short_runs import of_learning

LOCAL = {"learning_rate": 0.1, "epochs": 2, "batch_size": 64}


def history(x, y, test_x, test_y, **task):
    learning = {"data": (x, y, test_x, test_y), "model": "logistic-regression", "split": "equal", "local": LOCAL}
    learning["task"] = {"kind": "classification", **task}
    return simulate(of_learning(learning, clients=1, rounds=2, cohort=None))


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_a_label_that_is_ignored_is_as_one_that_is_not_there(kind):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(90, 4)).astype(np.float32), np.tile([0, 1, 2], 30)
    x[np.arange(90), y] += 2.0
    known = y != 2
    y = y if kind == "classification" else y[:, None].repeat(2, axis=1).astype(np.float32)
    whole = history(x[:60], y[:60], x[60:], y[60:], kind=kind, ignore=2)
    part = history(*(one[known[at]] for at in (slice(60), slice(60, 90)) for one in (x[at], y[at])), kind=kind)
    assert whole.column("evaluations", "loss").tolist() == pytest.approx(
        part.column("evaluations", "loss").tolist(), rel=1e-5
    )
    if kind == "regression":
        return
    assert whole.column("evaluations", "accuracy").tolist() == part.column("evaluations", "accuracy").tolist()
    said = "targets of 2 count for nothing (learning.task.ignore): 20 of 60 in training, 10 of 30 in tests"
    assert any(said in note for note in whole.notes)
    assert "ignore" not in Classification().model_dump()
    with pytest.raises(
        DataError, match=r"train_y: row 4 has the label -1; .* y\[y < 0\] = 3, with learning.task.ignore = 3"
    ):
        history(x, np.where(np.arange(90) == 4, -1, y), x, y)
    with pytest.raises(DataError, match=r"learning.task.ignore: \[0, 1, 2\] leaves no training sample; allowed: fewer"):
        history(x[:60], y[:60], x[60:], y[60:], ignore=[0, 1, 2])
