"""What stands still is said once a limit of real time is over, with the part at work; what moves is left in peace."""

import itertools
import re
import threading
import time

import pytest

from fedsim.errors import FedsimError
from fedsim.scenario import Scenario
from fedsim.simulation import simulate
from fedsim.watchdog import VARIABLE, Standing, Watchdog, limit_of_environment

PATIENCE_S = 20.0
"""Longest wait for a message; a test that passes waits about a tenth of a second."""


class Ear:
    """Takes what is said, and tells when something was."""

    def __init__(self):
        self.said, self.heard = [], threading.Event()

    def __call__(self, text):
        self.said.append(text)
        self.heard.set()


def test_a_clock_that_stands_is_told_with_round_second_and_process():
    ear = Ear()
    with Watchdog(lambda: Standing(12.5, 3, "serve"), 0.03, ear):
        assert ear.heard.wait(PATIENCE_S)
    assert "the simulated clock stands at 12.5 s, in round 4" in ear.said[0]
    assert "(process serve)" in ear.said[0]
    assert "a part of the user's own" in ear.said[0], "this test is not fedsim's"
    assert not [thread for thread in threading.enumerate() if thread.name == "fedsim-watchdog"]


def test_a_clock_that_moves_is_left_in_peace():
    ear, seconds, looks = Ear(), itertools.count(), threading.Semaphore(0)

    def standing():
        looks.release()
        second = next(seconds)
        return Standing(float(second), second)

    with Watchdog(standing, 0.01, ear):
        for _ in range(20):
            assert looks.acquire(timeout=PATIENCE_S)
    assert not ear.said


def test_a_clock_that_moves_by_the_smallest_steps_stands():
    ear, steps = Ear(), itertools.count()
    with Watchdog(lambda: Standing(1.0 + next(steps) * 2.0**-52), 0.03, ear):
        assert ear.heard.wait(PATIENCE_S)


def test_a_clock_that_moves_without_the_end_of_a_round_is_told():
    ear, seconds = Ear(), itertools.count()
    with Watchdog(lambda: Standing(float(next(seconds)), 7), 0.02, ear):
        assert ear.heard.wait(PATIENCE_S)
    assert re.search(r"in round 8, and no round has ended for \d+ s of real time", ear.said[0])


def test_a_limit_of_zero_starts_no_thread():
    before = threading.active_count()
    with Watchdog(Standing, 0):
        assert threading.active_count() == before


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf", "1e300"])
def test_a_wrong_limit_is_refused(text, monkeypatch):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(FedsimError, match=f"{VARIABLE}: '{text}' is not allowed"):
        limit_of_environment()


class Slow:
    """Waits until something was said about it."""

    def __init__(self, ear=None):
        self._ear = ear

    def select(self, view, rng):
        end = time.monotonic() + PATIENCE_S
        while self._ear is not None and not self._ear.heard.is_set() and time.monotonic() < end:
            time.sleep(0.001)
        return view.client[:2]

    def observe(self, reports):
        pass

    def __deepcopy__(self, memo):
        return Slow(self._ear)


SCENARIO = Scenario(
    name="slow",
    crowd={"clients": 4},
    learning={"kind": "none", "model_bits": 1e6},
    network="pause-two-speed",
    devices={"compute": "zero"},
    rounds={"count": 2},
    selector={"kind": "uniform", "cohort": 2},
)


def test_a_selector_that_takes_its_time_is_named(monkeypatch, caplog):
    monkeypatch.setenv(VARIABLE, "0.05")
    ear = Ear()
    monkeypatch.setattr("fedsim.watchdog._LOG.warning", ear)
    assert simulate(SCENARIO.replace({"selector": Slow(ear)})).rounds.num_rows == 2
    assert "the simulated clock stands at 0 s, in round 1" in ear.said[0]
    assert "It waits for the selector: a part of the user's own" in ear.said[0]
    assert "Slow.select, line" in ear.said[0]
