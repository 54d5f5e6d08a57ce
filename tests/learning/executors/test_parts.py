"""Several clients pass through one model together: each has the evaluation that a job of its own gives."""

import numpy as np
import pytest

from fedsim.learning import TASKS, EvaluationJob, ExecutorChoice, LocalTraining, TrainingSetup
from fedsim.learning.executors.chunks import SIZE
from fedsim.learning.models.flat_module import build_flat
from fedsim.learning.models.settings import MLP
from tests.support.plain_learner import half_way_learner
from tests.support.tiny_images import Tiny

DATA = Tiny(samples=2 * SIZE + 50).load()
# Parts that end within chunks, at their ends and beyond them, of rows in any order.
SIZES = np.array([1, SIZE - 1, 30, 7, SIZE, 12])
ROWS = np.random.default_rng(0).permutation(len(DATA.train_y))[: SIZES.sum()]
METRICS = {"accuracy alone": ("accuracy",), "two metrics": ("accuracy", "macro-f1")}


def setup(metrics):
    task = TASKS.make({"kind": "classification", "metrics": list(metrics)})
    return TrainingSetup(MLP(hidden=(4,)), DATA, LocalTraining(), 3, task=task)


@pytest.mark.parametrize("metrics", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize(("kind", "near"), [("sequential", 1e-6), ("processes", 1e-6), ("stacked", 1e-5)])
def test_parts_are_evaluated_as_jobs_of_their_own(kind, near, metrics):
    chosen = setup(metrics)
    model = build_flat(chosen.model, DATA.shape, DATA.classes, 3).layout.initial
    executor = ExecutorChoice.of(kind).build(chosen)
    alone = [EvaluationJob(model, rows) for rows in np.split(ROWS, np.cumsum(SIZES)[:-1])]
    together, whole, *expected = executor.evaluate([EvaluationJob(model, ROWS, SIZES), EvaluationJob(model), *alone])
    assert [one.samples for one in together.parts] == SIZES.tolist()
    for found, wanted in zip(together.parts, expected, strict=True):
        assert found.metrics == pytest.approx(dict(wanted.metrics))
        assert found.loss == pytest.approx(wanted.loss, rel=near)
    assert together.accuracy == pytest.approx(np.average([one.accuracy for one in expected], weights=SIZES))
    assert whole.parts == ()
    assert executor.evaluate([EvaluationJob(model, ROWS, SIZES)])[0] == together, "other jobs change no bit"
    if kind == "processes":
        assert ExecutorChoice.of("sequential").build(chosen).evaluate([EvaluationJob(model, ROWS, SIZES)]) == [together]


def test_an_executor_that_knows_no_parts_is_given_a_job_for_each_client():
    """The loss of a client is the squared distance of the model, at 0, from its target."""
    learner, executor = half_way_learner([(4.0, 0.0), (0.0, 8.0), (3.0, 4.0)])
    assert learner.evaluate_clients(learner.initial()).loss.tolist() == [16.0, 64.0, 25.0]
    assert executor.scored == 4, "once together, in vain, and once each"
