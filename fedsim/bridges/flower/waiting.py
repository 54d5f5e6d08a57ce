"""Where a ServerApp waits by the clock of its machine, simulated time passes in its place.

Flower's strategies sleep until enough nodes are there, and a ServerApp of one's own may sleep between two looks for
replies, or measure how long it has waited.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Protocol
from unittest.mock import patch


class Clock(Protocol):
    @property
    def now_s(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


_CLOCKS: Final = ("time", "monotonic", "perf_counter")
_REAL: Final = frozenset({"fedsim", *sys.stdlib_module_names})
"""Packages that see the real clocks: a wait of the standard library would not end by a clock that stands still."""


@contextmanager
def simulated_waiting(clock: Clock) -> Iterator[None]:
    """Let sleep and clocks of the module time mean simulated time in the calling thread, but for `_REAL` packages."""
    thread, over = threading.get_ident(), threading.Event()

    def here() -> bool:
        # A module that is imported meanwhile may keep these functions for good.
        caller = sys._getframe(2).f_globals.get("__name__", "").partition(".")[0]
        return threading.get_ident() == thread and not over.is_set() and caller not in _REAL

    def sleeping(real: Callable[[float], None]) -> Callable[[float], None]:
        def sleep(seconds: float) -> None:
            if here():
                clock.sleep(float(seconds))
            else:
                real(seconds)

        return sleep

    def showing(real: Callable[[], float]) -> Callable[[], float]:
        began_s = real()

        def now() -> float:
            return began_s + clock.now_s if here() else real()

        return now

    with ExitStack() as stack:
        for name in ("sleep", *_CLOCKS):
            real = getattr(time, name)
            simulated = sleeping(real) if name == "sleep" else showing(real)
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
