"""An executor is built once, with the first job, whichever thread it comes from."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from fedsim.learning.executors.deferred import DeferredExecutor


class Named:
    """Gives names back."""

    fingerprint, max_batch = "named", 3

    def train(self, jobs):
        return [f"trained {job}" for job in jobs]

    def evaluate(self, jobs):
        return [f"evaluated {job}" for job in jobs]


def test_nothing_is_built_before_a_job_comes_and_then_once():
    built = []
    executor = DeferredExecutor("named", 3, lambda: built.append(1) or Named())
    assert (executor.fingerprint, executor.max_batch, built) == ("named", 3, [])
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(executor.train, [i]) for i in range(8)] + [pool.submit(executor.evaluate, [9])]
    assert [list(one.result()) for one in found] == [*([f"trained {i}"] for i in range(8)), ["evaluated 9"]]
    assert built == [1]


def test_what_building_raises_reaches_the_caller_and_is_tried_again():
    attempts = []

    def build():
        attempts.append(1)
        if len(attempts) == 1:
            raise RuntimeError("not yet")
        return Named()

    executor = DeferredExecutor("named", 3, build)
    with pytest.raises(RuntimeError, match="not yet"):
        executor.train([1])
    assert executor.train([1]) == ["trained 1"]
