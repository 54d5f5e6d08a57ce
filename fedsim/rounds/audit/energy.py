"""The audit's own books of energy: what every battery held, got, gave and lost."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray
from fedsim.devices import Batteries, EnergyDemand
from fedsim.history.outcomes import COMPUTE, PHASES, Outcome
from fedsim.rounds.clients.record import ParticipationRecords

_TOLERANCE: Final = 1e-9
_CLOCK_ULPS: Final = 8


class EnergyBook:
    """What every battery of a run did, kept beside the batteries themselves.

    Parameters
    ----------
    batteries : as they are before the first round

    Attributes
    ----------
    initial_j : charge at time 0, shape (K,)
    charge_j : at the end of each client's last participation, shape (K,)
    recharged_j, drained_j, spent_j : what came in and went out while idle, and what participations spent, shape (K,)
    """

    def __init__(self, batteries: Batteries) -> None:
        everyone = np.arange(batteries.clients, dtype=np.int64)
        self._batteries, self._at_s = batteries, np.zeros(everyone.size)
        self.initial_j = batteries.charge_j(everyone, 0.0)
        self.charge_j = self.initial_j.copy()
        self.recharged_j, self.drained_j, self.spent_j = np.zeros((3, everyone.size))

    def wrong(self, said: ParticipationRecords) -> tuple[NDArray[Any], Callable[[int], str]]:
        """Book participations that are over; return whose energy does not add up, and what to say of it.

        For every member, ``charge before + recharged - drained - spent = charge after``, the charge stays within the
        battery, ``spent = bits * J/bit + operations * J/operation`` (or seconds of work times watts), and a battery
        that ran empty is empty.
        """
        draw, client = said.demand, said.client
        if draw is None:
            raise ValueError("a round of a run with batteries must say what it drew from them")
        batteries, spent_j = self._batteries, said.energy_j
        slack_j = _TOLERANCE * batteries.capacity_j
        before_j = self._idle(client, said.start_s)
        after_j = said.left_j
        least_j, most_j = self._priced_j(said, draw)
        wrong = ~(np.abs(before_j - draw.charge_j) <= slack_j)
        wrong |= ~(np.abs(before_j - spent_j - after_j) <= slack_j)
        wrong |= ~((spent_j >= least_j - slack_j) & (spent_j <= most_j + slack_j))
        wrong |= (after_j < 0) | (after_j > batteries.capacity_j)
        wrong |= said.emptied & ((after_j > slack_j) | (said.outcome != Outcome.DROPPED))
        self.spent_j[client] += spent_j
        self.charge_j[client], self._at_s[client] = after_j, said.ended_s
        total_j = (self.initial_j + self.recharged_j - self.drained_j - self.spent_j)[client]
        wrong |= ~(np.abs(total_j - after_j) <= slack_j + _TOLERANCE * self.recharged_j[client])
        return (
            wrong,
            lambda i: (
                f"its battery held {before_j[i]} J, {spent_j[i]} J were spent where {least_j[i]} to {most_j[i]} J are "
                f"due, and {after_j[i]} J are left of {batteries.capacity_j}"
            ),
        )

    def _idle(self, client: NDArray[np.int64], time_s: float) -> FloatArray:
        """Book the time since each client's last participation, and return its charge at an instant."""
        gain_j = self._batteries.idle_gain_w * (time_s - self._at_s[client])
        before_j = self.charge_j[client]
        gained_j = np.clip(gain_j, -before_j, self._batteries.capacity_j - before_j)
        self.recharged_j[client] += np.maximum(gained_j, 0.0)
        self.drained_j[client] += np.maximum(-gained_j, 0.0)
        return before_j + gained_j

    def _priced_j(self, said: ParticipationRecords, draw: EnergyDemand) -> tuple[FloatArray, FloatArray]:
        """Return the least and the most that what each member did can have cost.

        They differ where a battery ran empty in work: how much was done of it is known as well as the clock tells
        its share of the time, and not at all if it takes none.
        """
        prices, size = self._batteries.prices, draw.client.size
        reached = np.where(said.cut_in < 0, len(PHASES), said.cut_in)
        down_bits, up_bits = said.sent_bits
        planned_s, worked_s = said.planned_compute_s, said.spent_s[COMPUTE]
        part = np.divide(worked_s, planned_s, out=np.zeros(size), where=planned_s > 0)
        part = np.where(reached > COMPUTE, 1.0, part)
        cost_j = prices.receive_j_per_bit * down_bits + prices.transmit_j_per_bit * up_bits
        cost_j += prices.compute_w * worked_s + prices.sample_j * draw.samples * part
        tick_s = _CLOCK_ULPS * np.spacing(said.ended_s)
        blur = np.divide(tick_s, planned_s, out=np.ones(size), where=planned_s > tick_s)
        blur_j = np.where(said.emptied & (reached == COMPUTE), blur * draw.cost_j[COMPUTE], 0.0)
        return cost_j - blur_j, cost_j + blur_j
