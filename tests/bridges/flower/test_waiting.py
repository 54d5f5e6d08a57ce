"""Sleep and time of a ServerApp's thread are simulated, and those of other threads and later callers are not."""

import threading
import time
from types import FunctionType, ModuleType
from unittest.mock import patch

import pytest

pytest.importorskip("flwr", reason="the extra 'flower' is not installed")

import sys

from fedsim.bridges.flower.waiting import simulated_waiting


class StandingClock:
    def __init__(self):
        self.now_s = 0.0

    def sleep(self, seconds):
        self.now_s += seconds


def test_only_the_calling_thread_sleeps_in_simulated_time():
    clock, real, seen = StandingClock(), time.sleep, []
    holder = ModuleType("holder")
    holder.sleep = real
    with patch.dict(sys.modules, {"holder": holder, "nothing": None}), simulated_waiting(clock):
        began_s, others_s = time.time(), [time.monotonic(), time.perf_counter()]
        time.sleep(1000)
        holder.sleep(500)
        assert [time.monotonic() - others_s[0], time.perf_counter() - others_s[1]] == pytest.approx([1500.0] * 2)
        seen.append(time.time() - began_s)
        thread = threading.Thread(target=lambda: (time.sleep(0.001), seen.append(time.time() - began_s)))
        thread.start()
        thread.join()
        kept = time.sleep
    assert clock.now_s == 1500.0
    assert seen[0] == 1500.0
    assert 0.0 <= seen[1] < 100.0
    assert time.sleep is holder.sleep is real
    kept(0.001)
    assert clock.now_s == 1500.0, "a function that was kept is the real one afterwards"


def test_a_wait_of_the_standard_library_ends_by_the_real_clock():
    def now():
        return time.monotonic()

    of_library, of_app = (
        FunctionType(now.__code__, {"time": time, "__name__": name}) for name in ("multiprocessing.connection", "app")
    )
    with simulated_waiting(StandingClock()):
        before_s = of_library(), of_app()
        threading.Event().wait(0.01)
        assert of_library() > before_s[0]
        assert of_app() == before_s[1]
