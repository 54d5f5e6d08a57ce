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
    """Simulated time, as a waiting server sees it."""

    @property
    def now_s(self) -> float:
        """The present simulated second."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let simulated time pass."""
        ...


@contextmanager
def simulated_waiting(clock: Clock) -> Iterator[None]:
    """Let `time.sleep` and `time.time` of the calling thread mean simulated time; other threads see their own."""
    thread, real_sleep, real_time = threading.get_ident(), time.sleep, time.time
    began_s = real_time()

    def sleep(seconds: float) -> None:
        if threading.get_ident() == thread:
            clock.sleep(float(seconds))
        else:
            real_sleep(seconds)

    def now() -> float:
        return began_s + clock.now_s if threading.get_ident() == thread else real_time()

    with ExitStack() as stack:
        for name, real, simulated in (("sleep", real_sleep, sleep), ("time", real_time, now)):
            for module in _holders(name, real):
                stack.enter_context(patch.object(module, name, simulated))
        yield


def _holders(name: str, function: Callable[..., Any]) -> list[Any]:
    """Return the modules that hold a function of the module time under its own name."""
    modules = [module for module in list(sys.modules.values()) if module is not None]
    return [module for module in modules if vars(module).get(name) is function]
