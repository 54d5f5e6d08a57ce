"""What stands still is warned of once a limit of real time is over, with the place; what moves is not."""

import itertools
import threading
import time

import pytest

from fedsim.errors import FedsimError
from fedsim.simulation import simulate
from fedsim.watchdog import VARIABLE, limit_of_environment, watched
from tests.support.short_runs import timed

PATIENCE_S = 20.0
"""Longest wait for a warning; a test that passes waits about a tenth of a second."""


class Warnings:
    def __init__(self):
        self.texts, self.came = [], threading.Event()

    def __call__(self, text, *arguments):
        self.texts.append(text % arguments)
        self.came.set()


@pytest.fixture
def warnings(monkeypatch):
    found = Warnings()
    monkeypatch.setattr("fedsim.watchdog._LOG.warning", found)
    return found


def test_a_clock_that_stands_is_warned_of_with_second_and_place(monkeypatch, warnings):
    monkeypatch.setenv(VARIABLE, "0.03")
    with watched(lambda: 12.5):
        assert warnings.came.wait(PATIENCE_S)
    assert warnings.texts[0].startswith("fedsim: a simulated clock stands at 12.5 s for 0.03 s of real time, in\n")
    assert "in test_a_clock_that_stands_is_warned_of_with_second_and_place" in warnings.texts[0]
    assert not [thread for thread in threading.enumerate() if thread.name == "fedsim-watchdog"]


def test_a_clock_that_moves_is_left_in_peace(monkeypatch, warnings):
    monkeypatch.setenv(VARIABLE, "0.01")
    seconds, looks = itertools.count(), threading.Semaphore(0)

    def now_s():
        looks.release()
        return float(next(seconds))

    with watched(now_s):
        for _ in range(20):
            assert looks.acquire(timeout=PATIENCE_S)
    assert not warnings.texts


def test_warnings_come_twice_as_late_as_the_one_before_up_to_ten_limits(monkeypatch, warnings):
    monkeypatch.setenv(VARIABLE, "0.002")
    second, end = iter([None, None, 1.0, 1.0, *[2.0] * 1000]), time.monotonic() + PATIENCE_S
    with watched(lambda: next(second)):
        while len(warnings.texts) < 6 and time.monotonic() < end:
            time.sleep(0.001)
    assert "a simulation is being built" in warnings.texts[0]
    waits = [text.split(" for ")[1].split()[0] for text in warnings.texts[:6]]
    assert waits == ["0.002", "0.004", "0.008", "0.016", "0.02", "0.02"]


def test_a_limit_of_zero_starts_no_thread(monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")
    before = threading.active_count()
    with watched(lambda: None):
        assert threading.active_count() == before


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf", "1e300"])
def test_a_wrong_limit_is_refused(text, monkeypatch):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(FedsimError, match=f"{VARIABLE}: '{text}' is not allowed"):
        limit_of_environment()


class Slow:
    def __init__(self, warnings):
        self._warnings = warnings

    def select(self, view, rng):
        end = time.monotonic() + PATIENCE_S
        while "in select\n" not in "".join(self._warnings.texts) and time.monotonic() < end:
            time.sleep(0.001)
        return view.client[:2]

    def observe(self, reports):
        pass

    def __deepcopy__(self, memo):
        return Slow(self._warnings)


SCENARIO = timed(clients=4, bits=1e6, cohort=2, rounds={"count": 2})


def test_a_selector_that_takes_its_time_is_named(monkeypatch, warnings):
    monkeypatch.setenv(VARIABLE, "0.05")
    assert simulate(SCENARIO.replace({"selector": Slow(warnings)})).rounds.num_rows == 2
    text = next(text for text in warnings.texts if "in select\n" in text)
    assert text.startswith("fedsim: a simulated clock stands at 0 s for ")
    assert __file__ in text
