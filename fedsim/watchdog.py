"""A warning with the place in the code when a simulation has stood still for a minute of real time.

Nothing is stopped: a training may take its time. A thread of its own looks at the clock, so that events cost nothing.
"""

import logging
import math
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from fedsim.errors import FedsimError

VARIABLE: Final = "FEDSIM_WATCHDOG_S"
DEFAULT_S: Final = 60.0
_MOST: Final = 10
"""Times the first wait that the longest one lasts."""

_LOG: Final = logging.getLogger("fedsim")


@contextmanager
def watched(now_s: Callable[[], float | None]) -> Iterator[None]:
    """Warn while a clock does not move, or is None, as it is before there is one.

    Each warning doubles the wait up to the next one, so that hours of trainings are told of a few times an hour.
    """
    limit_s, stopped, thread = limit_of_environment(), threading.Event(), threading.get_ident()

    def look() -> None:
        wait_s, before = limit_s, now_s()
        while not stopped.wait(wait_s):
            now = now_s()
            if now == before:
                # faulthandler would print all threads, and needs a file of the system.
                place = "".join(traceback.format_stack(sys._current_frames().get(thread)))
                where = "a simulation is being built" if now is None else f"a simulated clock stands at {now:.9g} s"
                _LOG.warning(
                    "fedsim: %s for %.3g s of real time, in\n%s%s=0 is for no warning", where, wait_s, place, VARIABLE
                )
                wait_s = min(2 * wait_s, _MOST * limit_s)
            before = now

    looker = threading.Thread(target=look, name="fedsim-watchdog", daemon=True)
    if limit_s > 0:
        looker.start()
    try:
        yield
    finally:
        stopped.set()
        if limit_s > 0:
            looker.join()


def limit_of_environment() -> float:
    """Return FEDSIM_WATCHDOG_S, or 60 s."""
    text = os.environ.get(VARIABLE, "")
    try:
        limit_s = float(text) if text else DEFAULT_S
    except ValueError:
        limit_s = math.nan
    if not (0 <= limit_s <= threading.TIMEOUT_MAX):
        raise FedsimError(f"{VARIABLE}: {text[:80]!r} is not allowed; it must be a number of seconds, or 0 for none")
    return limit_s
