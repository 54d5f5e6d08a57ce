"""Handover as arithmetic: event A3 with hysteresis and time to trigger, without a clock."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from fedsim.arrays import BoolArray, FloatArray
from fedsim.registry import Settings
from fedsim.units import Bound, Decibels, NonNegative, Positive, Seconds


class HandoverRule(Settings):
    """The rule of handovers of clients with transfers in progress; others take the strongest station when they start.

    A client measures all stations at the multiples of a period. A neighbour that is stronger than the own station by
    more than the hysteresis in all measurements for the time to trigger becomes its station (event A3 of 3GPP TS
    38.331, clause 5.5.4.4, with its offsets at 0); of several the strongest does.

    Attributes
    ----------
    hysteresis_db : 0 to 15, as in the standard; 3 dB is the usual start (ns-3's default)
    time_to_trigger_s : 0.256 is one of the standard's values (0 to 5.12) and the usual start too
    measured_every_s : 0.2 is the shortest period of measuring on one's own frequency (TS 38.133, clause 9.2.5)
    reselect_after_s : float or None
        Time that a client whose station is lost takes to attach to another one in reach; a second or so in reality
        (detecting the loss, TS 38.331's T310, and finding and entering a cell). None: it waits for its station.
    """

    hysteresis_db: Annotated[Decibels, Field(ge=0, le=15)] = 3.0
    time_to_trigger_s: Annotated[NonNegative[Seconds], Bound(1e-3, 60.0)] = 0.256
    measured_every_s: Annotated[Positive[Seconds], Bound(1e-3, 3600.0)] = 0.2
    reselect_after_s: Annotated[NonNegative[Seconds], Bound(1e-3, 3600.0)] | None = None

    def ticks_s(self, now_s: float, number: int) -> FloatArray:
        """Return the next instants of measuring, the first of them after now."""
        first = math.floor(now_s / self.measured_every_s) + 1
        times_s = np.arange(first, first + number + 1, dtype=np.float64) * self.measured_every_s
        return times_s[1:] if times_s[0] <= now_s else times_s[:-1]

    @property
    def patience(self) -> int:
        """Greatest number of measurements until a neighbour that stays stronger becomes the station."""
        return int(self.time_to_trigger_s / self.measured_every_s) + 2


@dataclass(frozen=True)
class Watch:
    """The neighbours that are stronger than the own station in consecutive measurements, and since when."""

    times_s: FloatArray
    since_s: FloatArray
    fires: BoolArray
    signal_db: FloatArray

    @classmethod
    def over(
        cls, rule: HandoverRule, times_s: FloatArray, signal_db: FloatArray, serving: int, since_s: FloatArray
    ) -> "Watch":
        better = signal_db - rule.hysteresis_db > signal_db[:, serving : serving + 1]
        better[:, serving] = False
        number = np.arange(len(times_s))[:, None]
        # The last measurement up to each at which a neighbour was not stronger; -1 if it was in all of them.
        failed = np.maximum.accumulate(np.where(better, -1, number), axis=0)
        began = np.where(failed < 0, np.minimum(since_s, times_s[0]), times_s[np.minimum(failed + 1, len(times_s) - 1)])
        held = times_s[:, None] - began
        # The instants are multiples of a period, whose differences differ in the last digits.
        fires = better & (held >= rule.time_to_trigger_s - 1e-9 * rule.measured_every_s)
        return cls(times_s, np.where(better, began, np.inf), fires, signal_db)

    def first(self) -> tuple[int, int] | None:
        """Return the first measurement that triggers a handover, and the new station; None if there is none."""
        rows = self.fires.any(axis=1)
        if not rows.any():
            return None
        row = int(np.argmax(rows))
        return row, int(np.argmax(np.where(self.fires[row], self.signal_db[row], -np.inf)))

    def since_at(self, now_s: float, before_s: FloatArray) -> FloatArray:
        """Return since when each neighbour has been stronger, as of the last measurement by now, shape (b,)."""
        row = int(np.searchsorted(self.times_s, now_s, side="right")) - 1
        return before_s if row < 0 else self.since_s[row]
