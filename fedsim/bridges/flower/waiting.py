"""Where a ServerApp waits by the clock of its machine, simulated time passes in its place.

Flower's strategies sleep until enough nodes are there, and a ServerApp of one's own may sleep between two looks for
replies, or measure how long it has waited.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol
from unittest.mock import patch


class Clock(Protocol):
    @property
    def now_s(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


@contextmanager
def simulated_waiting(clock: Clock) -> Iterator[None]:
    """Let `time.sleep` and `time.time` of the calling thread mean simulated time; other threads see their own."""
    thread, real_sleep, real_time = threading.get_ident(), time.sleep, time.time
    began_s, over = real_time(), threading.Event()

    def here() -> bool:
        # A module that is imported meanwhile may keep these functions for good.
        return threading.get_ident() == thread and not over.is_set()

    def sleep(seconds: float) -> None:
        if here():
            clock.sleep(float(seconds))
        else:
            real_sleep(seconds)

    def now() -> float:
        return began_s + clock.now_s if here() else real_time()

    with ExitStack() as stack:
        for name, real, simulated in (("sleep", real_sleep, sleep), ("time", real_time, now)):
            for module in _holders(name, real):
                stack.enter_context(patch.object(module, name, simulated))
        try:
            yield
        finally:
            over.set()


def _holders(name: str, function: Callable[..., Any]) -> list[Any]:
    """Return the modules that hold a function of the module time under its own name."""
    holders = []
    for module in list(sys.modules.values()):
        try:
            held = vars(module)
        except TypeError:  # not everything that stands among the modules is one
            continue
        if held.get(name) is function:
            holders.append(module)
    return holders
