"""The audit's own account of energy: charge, recharge, idle drain and spending of every battery."""

from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import Batteries, EnergyDemand
from fedsim.history.outcomes import COMPUTE, DOWNLINK, PHASES, UPLINK, Outcome
from fedsim.network.contracts import Directions
from fedsim.per_client import at
from fedsim.rounds.effects.audit.records import Records, refuse

_TOLERANCE: Final = 1e-9
_ULPS: Final = 8
_BITS_KNOWN_TO: Final = 1e-3
"""Of a message cut short: what 10 Mbit/s carry in eight roundings of a clock of 10^5 s."""
_FOUND_TO: Final = 1e-3
_OWN: Final = Directions()
_MESSAGE_ROUNDING: Final = 32 * float(np.finfo(np.float64).eps)
_SMALLEST: Final = float(np.finfo(np.float64).smallest_subnormal)


class EnergyBook:
    """Energy of every battery of a run, added up independently of the batteries."""

    def __init__(self, batteries: Batteries, shared: Directions = _OWN) -> None:
        self._shared = np.array(shared)
        every_client = np.arange(batteries.clients, dtype=np.int64)
        self._batteries, self._at_s = batteries, np.zeros(every_client.size)
        self.initial_j = batteries.charge_j(every_client, 0.0)
        self.charge_j = self.initial_j.copy()
        self.recharged_j, self.drained_j, self.spent_j = np.zeros((3, every_client.size))

    def check(self, number: int, records: Records) -> None:
        """Account for participations that have ended, and check them.

        For every client, ``charge before + recharged - drained - spent = charge after``, the charge stays within the
        battery, ``spent = bits * J/bit + seconds on the air * watts + seconds of messages * watts + operations *
        J/operation`` (or seconds of work times watts), a message is on the air for at most its seconds, and a battery
        that ran empty is empty.
        """
        demand, client = records.demand, records.client
        capacity_j = np.broadcast_to(at(self._batteries.capacity_j, client), client.shape)
        spent_j, after_j = records.energy_j, records.left_j
        # Shares of a price are rounded to the smallest float at the least, and so are their products.
        slack_j = _TOLERANCE * capacity_j + _ULPS * _SMALLEST * (1.0 + demand.cost_j.sum(axis=0) + demand.samples)
        before_j = self._idle(client, records.start_s)
        least_j, most_j = self._priced_j(records, demand)
        self.spent_j[client] += spent_j
        self.charge_j[client], self._at_s[client] = after_j, records.ended_s
        total_j = (self.initial_j + self.recharged_j - self.drained_j - self.spent_j)[client]
        total_slack_j = slack_j + _TOLERANCE * self.recharged_j[client]

        def told(i: int) -> str:
            return (
                f"its battery held {before_j[i]} J, {spent_j[i]} J were spent where {least_j[i]} to {most_j[i]} J are "
                f"due, and {after_j[i]} J are left of {capacity_j[i]}"
            )

        air_s, most_s = records.on_air_s, records.spent_s[[DOWNLINK, UPLINK]]
        outside = ~((air_s >= 0) & (air_s <= most_s * (1 + _TOLERANCE) + _ULPS * np.spacing(records.ended_s)))
        for broken, wrong in (
            ("it is on the air for less than no time, or longer than its messages", outside.any(axis=0)),
            ("it does not begin with its charge", ~(np.abs(before_j - demand.charge_j) <= slack_j)),
            ("its charge does not fall by what was spent", ~(np.abs(before_j - spent_j - after_j) <= slack_j)),
            ("it paid less than the price", ~(spent_j >= least_j - slack_j)),
            ("it paid more than the price", ~(spent_j <= most_j + slack_j)),
            ("it is left with less than nothing", after_j < 0),
            ("it is left with more than its battery holds", after_j > capacity_j),
            ("it ran empty and has charge left", records.emptied & (after_j > slack_j)),
            ("it ran empty and was not dropped", records.emptied & (records.outcome != Outcome.DROPPED)),
            ("its energy does not add up over the run", ~(np.abs(total_j - after_j) <= total_slack_j)),
        ):
            refuse(broken, wrong, number, records, told)

    def _idle(self, client: IntArray, time_s: float) -> FloatArray:
        """Account for the idle time since each client's last participation, and return its charge at an instant."""
        gain_j = at(self._batteries.idle_gain_w, client) * (time_s - self._at_s[client])
        before_j = self.charge_j[client]
        gained_j = np.clip(gain_j, -before_j, at(self._batteries.capacity_j, client) - before_j)
        self.recharged_j[client] += np.maximum(gained_j, 0.0)
        self.drained_j[client] += np.maximum(-gained_j, 0.0)
        return before_j + gained_j

    def _priced_j(self, records: Records, demand: EnergyDemand) -> tuple[FloatArray, FloatArray]:
        """Return the least and the greatest energy that each client's participation can have cost.

        They differ if a participation ended during work: the share of the work that was done is known up to the
        resolution of the clock, and is unknown for work that takes no time.
        """
        prices, size = self._batteries.prices.of(demand.client), demand.client.size
        transmit_w = prices.transmit_w
        if demand.transmit_power_dbm is not None:
            amplifier_w = 10.0 ** (demand.transmit_power_dbm / 10.0 - 3.0) / prices.amplifier_efficiency
            transmit_w = np.where(np.greater(transmit_w, 0), amplifier_w + prices.circuit_w, 0.0)
        reached = np.where(records.arrived, len(PHASES), records.cut_in)
        down_bits, up_bits = records.sent_bits
        planned_s, worked_s = records.planned_compute_s, records.spent_s[COMPUTE]
        part = np.divide(worked_s, planned_s, out=np.zeros(size), where=planned_s > 0)
        part = np.where(reached > COMPUTE, 1.0, part)
        cost_j = prices.receive_j_per_bit * down_bits + prices.transmit_j_per_bit * up_bits
        cost_j += prices.receive_w * records.on_air_s[0] + transmit_w * records.on_air_s[1]
        cost_j += prices.base_w * (records.spent_s[DOWNLINK] + records.spent_s[UPLINK])
        frequency = 1.0 if demand.frequency is None else demand.frequency
        cost_j += (prices.compute_w * worked_s * frequency + prices.sample_j * demand.samples * part) * frequency**2
        tick_s = _ULPS * np.spacing(records.ended_s)
        blur = np.divide(tick_s, planned_s, out=np.ones(size), where=planned_s > tick_s)
        blur_j = np.where(reached == COMPUTE, blur * demand.cost_j[COMPUTE], 0.0)
        # An instant is known to the resolution of the clock, and so is the time on the air up to it.
        radio_w = prices.receive_w + transmit_w + prices.base_w
        blur_j = blur_j + np.where(records.emptied, tick_s * radio_w, 0.0)
        # On a shared medium the instant at which seconds have cost the rest is looked for, and found a little late.
        late = records.emptied & np.where(reached == DOWNLINK, *self._shared) & (radio_w > 0) & (reached != COMPUTE)
        blur_j = blur_j + np.where(late, _FOUND_TO * demand.charge_j, 0.0)
        # The bits of a message cut short are known to the rounding of the whole message, and to that of the clock.
        message_j = demand.cost_j[DOWNLINK] + demand.cost_j[UPLINK]
        bit_j = prices.receive_j_per_bit + prices.transmit_j_per_bit
        blur_j = blur_j + np.where(records.emptied, _MESSAGE_ROUNDING * message_j + _BITS_KNOWN_TO * bit_j, 0.0)
        return cost_j - blur_j, cost_j + blur_j
