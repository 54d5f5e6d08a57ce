"""Where batteries run empty in the planned phases of a cohort, by the price of bits, of work and of time on the air."""

import math
from collections.abc import Callable

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.devices import NEVER_EMPTY, EnergyDemand
from fedsim.history.outcomes import COMPUTE
from fedsim.per_client import Values, of_one
from fedsim.rounds.clients.interruptions import BatteryEmpty, Carried


class Drain:
    """The energy that the participations of one cohort draw, phase by phase."""

    spent_s: FloatArray

    def __init__(self, demand: EnergyDemand, bits: tuple[Values, Values], carried: Carried | None) -> None:
        self._demand, self._bits, self._carried = demand, bits, carried

    def planned(self, planned_s: FloatArray, start_s: float) -> dict[int, BatteryEmpty]:
        """Return where batteries run empty that do not last, by position in the cohort.

        A phase of unknown duration costs its bits alone here.
        """
        phase, share = self._demand.runs_empty(planned_s)
        member = np.flatnonzero(phase < NEVER_EMPTY)
        found = {}
        for i, at, of_energy in zip(member.tolist(), phase[member].tolist(), share[member].tolist(), strict=True):
            begins_s = start_s + float(planned_s[:at, i].sum())
            found[i] = self._empty(i, at, of_energy, begins_s, float(planned_s[at, i]))
        return found

    def begins(self, i: int, phase: int, start_s: float, planned_s: float) -> BatteryEmpty | None:
        """Return where the battery of client i runs empty in a phase that begins; None if it lasts."""
        left_j, cost_j = self._demand.left_j(i, phase, self.spent_s[:, i]), self._demand.phase_j(i, phase, planned_s)
        if cost_j <= left_j + self._demand.slack_j(i):
            return None
        return self._empty(i, phase, left_j / cost_j, start_s, planned_s)

    def lasts_s(self, i: int, phase: int) -> float:
        """Return for how many seconds on the air the battery of client i lasts in a transfer; inf without end."""
        power_w = self._demand.radio_w(i, phase)
        if power_w == 0:
            return math.inf
        return (self._demand.left_j(i, phase, self.spent_s[:, i]) + self._demand.slack_j(i)) / power_w

    def _empty(self, i: int, phase: int, of_energy: float, start_s: float, planned_s: float) -> BatteryEmpty:
        if self._carried is None or phase == COMPUTE or math.isinf(planned_s) or not of_energy > 0:
            return BatteryEmpty(phase, of_energy, of_energy)
        bits, members = of_one(self._bits[phase // 2], i), np.array([i], dtype=np.int64)
        carried = self._carried
        per_bit_j, power_w = self._demand.per_bit_j(i, phase, bits), self._demand.radio_w(i, phase)
        left_j = of_energy * (per_bit_j * bits + power_w * planned_s)

        def bits_at(elapsed_s: float) -> float:
            return float(carried(phase, members, np.array([start_s]), np.array([elapsed_s]))[0])

        elapsed_s = first_at_least(lambda at_s: per_bit_j * bits_at(at_s) + power_w * at_s, left_j, planned_s)
        return BatteryEmpty(phase, elapsed_s / planned_s, min(1.0, bits_at(elapsed_s) / bits) if bits > 0 else 1.0)


def first_at_least(grows: Callable[[float], float], least: float, longest_s: float) -> float:
    """Return the first instant in [0, longest_s] at which a function that never falls reaches a value."""
    low_s, high_s = 0.0, longest_s
    # To the last digit: the longest time may be that of a band in which a message takes years.
    while low_s < (middle_s := 0.5 * (low_s + high_s)) < high_s:
        if grows(middle_s) >= least:
            high_s = middle_s
        else:
            low_s = middle_s
    return high_s
