"""The audit's own account of energy: charge, recharge, idle drain and spending of every battery."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import Batteries, EnergyDemand
from fedsim.history.outcomes import COMPUTE, PHASES, Outcome
from fedsim.rounds.clients.records import ParticipationRecords

_TOLERANCE: Final = 1e-9
_CLOCK_ULPS: Final = 8


class EnergyBook:
    """Energy of every battery of a run, added up independently of the batteries.

    Parameters
    ----------
    batteries : before the first round

    Attributes
    ----------
    initial_j : charge at time 0 in joules, shape (K,)
    charge_j : charge at the end of each client's last participation, shape (K,)
    recharged_j, drained_j, spent_j : energy gained while idle, lost while idle and spent in participations, shape (K,)
    """

    def __init__(self, batteries: Batteries) -> None:
        every_client = np.arange(batteries.clients, dtype=np.int64)
        self._batteries, self._at_s = batteries, np.zeros(every_client.size)
        self.initial_j = batteries.charge_j(every_client, 0.0)
        self.charge_j = self.initial_j.copy()
        self.recharged_j, self.drained_j, self.spent_j = np.zeros((3, every_client.size))

    def wrong(self, records: ParticipationRecords) -> tuple[NDArray[Any], Callable[[int], str]]:
        """Account for participations that have ended; return which are wrong, shape (m,), and the message for each.

        For every client, ``charge before + recharged - drained - spent = charge after``, the charge stays within the
        battery, ``spent = bits * J/bit + operations * J/operation`` (or seconds of work times watts), and a battery
        that ran empty is empty.
        """
        demand, client = records.demand, records.client
        if demand is None:
            raise ValueError("demand: None is not allowed; records of a run with batteries need the energy demand")
        batteries, spent_j = self._batteries, records.energy_j
        slack_j = _TOLERANCE * batteries.capacity_j
        before_j = self._idle(client, records.start_s)
        after_j = records.left_j
        least_j, most_j = self._priced_j(records, demand)
        wrong = ~(np.abs(before_j - demand.charge_j) <= slack_j)
        wrong |= ~(np.abs(before_j - spent_j - after_j) <= slack_j)
        wrong |= ~((spent_j >= least_j - slack_j) & (spent_j <= most_j + slack_j))
        wrong |= (after_j < 0) | (after_j > batteries.capacity_j)
        wrong |= records.emptied & ((after_j > slack_j) | (records.outcome != Outcome.DROPPED))
        self.spent_j[client] += spent_j
        self.charge_j[client], self._at_s[client] = after_j, records.ended_s
        total_j = (self.initial_j + self.recharged_j - self.drained_j - self.spent_j)[client]
        wrong |= ~(np.abs(total_j - after_j) <= slack_j + _TOLERANCE * self.recharged_j[client])
        return (
            wrong,
            lambda i: (
                f"its battery held {before_j[i]} J, {spent_j[i]} J were spent where {least_j[i]} to {most_j[i]} J are "
                f"due, and {after_j[i]} J are left of {batteries.capacity_j}"
            ),
        )

    def _idle(self, client: IntArray, time_s: float) -> FloatArray:
        """Account for the idle time since each client's last participation, and return its charge at an instant."""
        gain_j = self._batteries.idle_gain_w * (time_s - self._at_s[client])
        before_j = self.charge_j[client]
        gained_j = np.clip(gain_j, -before_j, self._batteries.capacity_j - before_j)
        self.recharged_j[client] += np.maximum(gained_j, 0.0)
        self.drained_j[client] += np.maximum(-gained_j, 0.0)
        return before_j + gained_j

    def _priced_j(self, records: ParticipationRecords, demand: EnergyDemand) -> tuple[FloatArray, FloatArray]:
        """Return the least and the greatest energy that each client's participation can have cost, shape (m,).

        They differ if a battery ran empty during work: the share of the work that was done is known up to the
        resolution of the clock, and is unknown for work that takes no time.
        """
        prices, size = self._batteries.prices, demand.client.size
        reached = np.where(records.arrived, len(PHASES), records.cut_in)
        down_bits, up_bits = records.sent_bits
        planned_s, worked_s = records.planned_compute_s, records.spent_s[COMPUTE]
        part = np.divide(worked_s, planned_s, out=np.zeros(size), where=planned_s > 0)
        part = np.where(reached > COMPUTE, 1.0, part)
        cost_j = prices.receive_j_per_bit * down_bits + prices.transmit_j_per_bit * up_bits
        cost_j += prices.compute_w * worked_s + prices.sample_j * demand.samples * part
        tick_s = _CLOCK_ULPS * np.spacing(records.ended_s)
        blur = np.divide(tick_s, planned_s, out=np.ones(size), where=planned_s > tick_s)
        blur_j = np.where(records.emptied & (reached == COMPUTE), blur * demand.cost_j[COMPUTE], 0.0)
        return cost_j - blur_j, cost_j + blur_j
