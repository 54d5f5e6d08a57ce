"""What says where a simulation is at work when it seems to stand.

That is when its clock has not moved for a minute of real time, or no round has ended for five. A thread of its own
looks at the clock a few times a minute, so that no event and no round costs anything. Nothing is stopped: a training
may take its time, and only a user can know.
"""

import logging
import math
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Final, Self

from fedsim.code_digest import is_users
from fedsim.errors import FedsimError

VARIABLE: Final = "FEDSIM_WATCHDOG_S"
"""Names another number of seconds; 0 for no watchdog."""
DEFAULT_S: Final = 60.0

_LOG: Final = logging.getLogger("fedsim")
_LOOKS: Final = 6
_ROUNDS: Final = 5
"""Limits without the end of a round after which that is said, where the clock moves."""
_SAMPLES: Final = 10
_BETWEEN_SAMPLES_S: Final = 0.02
_PROGRESS_S: Final = 1e-9

_PARTS: Final = {
    "fedsim.selectors": "the selector",
    "fedsim.rounds.policies": "the policy",
    "fedsim.rounds.clients": "clients",
    "fedsim.rounds.audit": "the audit",
    "fedsim.rounds.aggregation": "aggregation",
    "fedsim.rounds.hierarchy": "edge servers",
    "fedsim.rounds.server": "the server",
    "fedsim.network": "links",
    "fedsim.devices": "devices (availability, compute time, energy)",
    "fedsim.learning": "learning (trainings and evaluations take real time)",
    "fedsim.privacy": "privacy",
    "fedsim.history": "the recording of rows",
    "fedsim.results": "the run folder",
}
"""Module, or the beginning of its name -> part of a simulation."""


@dataclass(frozen=True)
class Standing:
    """How far a simulation is."""

    time_s: float | None = None
    rounds: int = 0
    process: str = ""


class Watchdog:
    """Looks after the simulation of the thread that enters this context."""

    def __init__(
        self,
        standing: Callable[[], Standing],
        limit_s: float | None = None,
        tell: Callable[[str], object] | None = None,
    ) -> None:
        self._standing, self._tell = standing, tell or _LOG.warning
        self._limit_s = limit_of_environment() if limit_s is None else limit_s
        self._watched = 0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Begin to look."""
        if self._limit_s > 0:
            self._watched = threading.get_ident()
            self._thread = threading.Thread(target=self._look, name="fedsim-watchdog", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _look(self) -> None:
        clock, rounds = _Wait(self._standing(), self._limit_s), _Wait(self._standing(), _ROUNDS * self._limit_s)
        while not self._over.wait(self._limit_s / _LOOKS):
            now = self._standing()
            stood_s = clock.over_s(now, _has_moved(clock.seen, now))
            if stood_s is not None:
                self._tell(_paragraph(now, f"has not moved for {stood_s:.0f} s of real time", self._at_work()))
            stood_s = rounds.over_s(now, rounds.seen.rounds != now.rounds)
            if stood_s is not None and now.time_s is not None:
                self._tell(_paragraph(now, f"no round has ended for {stood_s:.0f} s of real time", self._at_work()))

    def _at_work(self) -> str:
        """Return the part that is at work most often in a few looks."""
        found: Counter[str] = Counter()
        for _ in range(_SAMPLES):
            frame = sys._current_frames().get(self._watched)
            found[part_of(frame)] += 1
            del frame
            if self._over.wait(_BETWEEN_SAMPLES_S):
                break
        return found.most_common(1)[0][0]


class _Wait:
    """How long something has stood, and when that is said next."""

    def __init__(self, seen: Standing, limit_s: float) -> None:
        self.seen, self._limit_s = seen, limit_s
        self._since, self._patience_s = time.monotonic(), limit_s

    def over_s(self, now: Standing, moved: bool) -> float | None:
        """Return the seconds for which it has stood if that is to be said now, and wait twice as long then."""
        if moved:
            self.seen, self._since, self._patience_s = now, time.monotonic(), self._limit_s
        stood_s = time.monotonic() - self._since
        if stood_s < self._patience_s:
            return None
        self._patience_s *= 2
        return stood_s


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


def part_of(frame: FrameType | None) -> str:
    """Return in words which part of a simulation a thread is in, from its innermost frame outwards."""
    own = ""
    while frame is not None:
        module, code = str(frame.f_globals.get("__name__", "")), frame.f_code
        here = f"{module}.{code.co_qualname}, line {frame.f_lineno}"
        room = next((words for beginning, words in _PARTS.items() if f"{module}.".startswith(f"{beginning}.")), None)
        if room is not None:
            return f"{room}: {own or here}"
        if not own and is_users(module):
            own = f"a part of the user's own, {here}"
        frame = frame.f_back
    return own or "the simulation"


def _has_moved(before: Standing, now: Standing) -> bool:
    if before.time_s is None or now.time_s is None:
        return before != now
    return now.rounds != before.rounds or now.time_s - before.time_s > _PROGRESS_S


def _paragraph(now: Standing, stood: str, at_work: str) -> str:
    """Return what is said after a time without progress."""
    where = "the simulation is still being built"
    if now.time_s is not None:
        where = f"the simulated clock stands at {now.time_s:.9g} s, in round {now.rounds + 1}"
    process = f" (process {now.process})" if now.process else ""
    return (
        f"fedsim: {where}, and {stood}. It waits for {at_work}{process}. The "
        f"run goes on; Ctrl-C ends it. {VARIABLE} sets the time, 0 switches this message off."
    )
