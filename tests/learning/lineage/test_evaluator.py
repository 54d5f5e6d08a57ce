"""Evaluations run beside trainings, few at a time, and change no number."""

import threading
from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.plain_learner import HalfWay, half_way_learner, updates

TARGETS = [(4.0, 0.0), (0.0, 8.0)]
LONG_S = 20.0


class Together(HalfWay):
    """An evaluation ends only once a training has begun after it, and fails where it is told to."""

    def __init__(self, targets: Sequence[Sequence[float]], fails_at: float | None = None) -> None:
        super().__init__(targets)
        self.waits, self.fails_at = True, fails_at
        self.trained, self.alone = threading.Semaphore(0), threading.Lock()

    def train(self, jobs):
        found = list(super().train(jobs))
        self.trained.release()
        return found

    def evaluate(self, jobs):
        assert self.alone.acquire(blocking=False), "two calls of evaluate at once"
        try:
            if self.waits:
                assert self.trained.acquire(timeout=LONG_S), "no training beside the evaluation"
            if self.fails_at == jobs[0].model[0]:
                raise RuntimeError("the test set is gone")
            return super().evaluate(jobs)
        finally:
            self.alone.release()


def together(fails_at=None):
    executor = Together(TARGETS, fails_at)
    return half_way_learner(TARGETS, executor=executor)[0], executor


def after_rounds(learner, rounds):
    models = [learner.initial()]
    for k in range(rounds):
        models.append(learner.aggregate(models[-1], updates(learner, models[-1], k % 2), np.ones(1)))
    return models[1:]


def test_an_evaluation_runs_while_the_next_round_trains():
    learner, executor = together()
    models = after_rounds(learner, 3)
    learner.vector(models[0])
    assert executor.trained.acquire(blocking=False)
    first = learner.start_evaluation(models[0])
    assert not first.done()
    learner.vector(models[1])  # lets the first evaluation end
    assert first.result() == half_way_learner(TARGETS)[0].evaluate(after_rounds(learner, 1)[0])
    assert first.done()
    assert learner.start_evaluation(models[0]) is first


def test_at_most_two_evaluations_are_under_way():
    learner, executor = together()
    models = after_rounds(learner, 6)
    learner.vector(models[-1])
    gate = executor.trained = threading.Semaphore(0)
    started = [learner.start_evaluation(model) for model in models[:2]]
    threading.Timer(0.05, gate.release).start()
    third = learner.start_evaluation(models[2])
    assert started[0].done()
    assert not started[1].done()
    gate.release(5)
    plain, _ = half_way_learner(TARGETS)
    expected = [plain.evaluate(model) for model in after_rounds(plain, 3)]
    assert [each.result() for each in (*started, third)] == expected
    assert learner.work.evaluated == 3


def test_a_failed_evaluation_raises_where_it_is_read():
    learner, executor = together(fails_at=2.0)
    executor.waits = False
    models = after_rounds(learner, 2)
    failed, fine = (learner.start_evaluation(model) for model in models)
    with pytest.raises(RuntimeError, match="the test set is gone"):
        failed.result()
    assert fine.result().accuracy == 0.5
    with pytest.raises(RuntimeError, match="the test set is gone"):
        failed.result()


def test_an_interrupt_that_finds_the_thread_starting_leaves_no_thread(monkeypatch):
    """Python waits for all threads before it ends: the command line has said that it was interrupted, and stood."""
    begun, start = [], threading.Thread.start
    learner, _ = half_way_learner(TARGETS)  # kept, as a run keeps it: without it the thread would end

    def interrupted(thread):
        start(thread)
        begun.append(thread)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            learner.start_evaluation(learner.initial())
    (thread,) = begun
    thread.join(LONG_S)
    assert not thread.is_alive()
