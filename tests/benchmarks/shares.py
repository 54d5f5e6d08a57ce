"""Shares of a run's time by part of the simulator, from samples of the stack.

A timer of processor time interrupts the run every two milliseconds. The time since the interrupt before counts for the
innermost part that the stack stands in, so that a long NumPy call, which delays its interrupt, counts in full.
`PARTS` says which files belong to which part; files of no part, such as NumPy's and `fedsim/streams.py`, count for
what has called them.
"""

import signal
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Self

PARTS = {
    "selection": (
        "fedsim/selectors/",
        "fedsim/rounds/server/crowd",
        "fedsim/rounds/server/candidates",
        "fedsim/rounds/server/view",
        "fedsim/devices/availability/",
    ),
    "records": ("fedsim/history/", "fedsim/rounds/server/rows"),
    "network": ("fedsim/network/",),
    "SimPy": ("simpy/",),
    "clients and server": ("fedsim/rounds/", "fedsim/devices/", "fedsim/privacy/", "fedsim/learning/"),
}


class Shares:
    """Samples the stack between entry and exit; use it as a context manager, in the main thread."""

    def __init__(self, every_s: float = 0.002) -> None:
        self.spent_s: Counter[str] = Counter()
        self._every_s = every_s
        self._part: dict[str, str | None] = {}
        self._last_s = 0.0

    def __enter__(self) -> Self:
        self._last_s = time.process_time()
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, self._every_s, self._every_s)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)

    def __str__(self) -> str:
        """Return one line with the share of each part, the largest first."""
        whole_s = sum(self.spent_s.values())
        return ", ".join(f"{part} {spent_s / whole_s:.0%}" for part, spent_s in self.spent_s.most_common())

    def _sample(self, _: int, frame: FrameType | None) -> None:
        now_s = time.process_time()
        spent_s, self._last_s = now_s - self._last_s, now_s
        while frame is not None:
            part = self._part_of(frame.f_code.co_filename)
            if part is not None:
                self.spent_s[part] += spent_s
                return
            frame = frame.f_back
        self.spent_s["rest"] += spent_s

    def _part_of(self, file: str) -> str | None:
        if file not in self._part:
            name = Path(file).as_posix()
            found = (part for part, places in PARTS.items() if any(place in name for place in places))
            self._part[file] = next(found, None)
        return self._part[file]
