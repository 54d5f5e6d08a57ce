"""The batteries of one run: their charge, and the energy that a cohort takes from them."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.per_client import Values, at
from fedsim.units import db_to_linear

_PHASES: Final = 3


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Energy prices of transfers and work: each a number for all clients, or one for each, shape (K,)."""

    receive_j_per_bit: Values
    transmit_j_per_bit: Values
    sample_j: Values
    compute_w: Values
    receive_w: Values = 0.0
    transmit_w: Values = 0.0
    base_w: Values = 0.0
    amplifier_efficiency: Values = 1.0
    circuit_w: Values = 0.0

    def of(self, client: IntArray) -> "Prices":
        return Prices(**{name: at(price, client) for name, price in vars(self).items()})

    def sending_w(self, radiated_dbm: Values) -> Values:
        """Return the power that a sender draws: the radiated power over the amplifier's efficiency, and the circuit."""
        return db_to_linear(radiated_dbm) * 1e-3 / self.amplifier_efficiency + self.circuit_w


@dataclass(frozen=True)
class EnergyDemand:
    """Energy demand of the participations of a cohort with n members.

    Phases are 0, 1 and 2: downlink, work, uplink. ``charge_j`` is the charge at the beginning, and ``cost_j``, shape
    (3, n), the energy of the bits and the work if they are completed. ``power_w`` of the radio on the air, and
    ``base_w`` of its messages for as long as they last, both of shape (3, n), are None where seconds of the radio cost
    no energy. ``frequency`` is a share of the full clock frequency.
    """

    client: IntArray
    charge_j: FloatArray
    cost_j: FloatArray
    samples: FloatArray
    power_w: FloatArray | None = None
    base_w: FloatArray | None = None
    frequency: FloatArray | None = None
    transmit_power_dbm: FloatArray | None = None

    @property
    def counts_air(self) -> bool:
        return self.power_w is not None

    def of(self, part: IntArray) -> "EnergyDemand":
        columns = vars(self).items()
        of_part: dict[str, Any] = {name: None if of is None else of[..., part] for name, of in columns}
        return EnergyDemand(**of_part)

    def radio_j(self, phase: int, members: IntArray, on_air_s: FloatArray, spent_s: FloatArray) -> FloatArray:
        if self.power_w is None or self.base_w is None:
            return np.zeros(members.size)
        radio_j: FloatArray = self.power_w[phase][members] * on_air_s + self.base_w[phase][members] * spent_s
        return radio_j

    def spent_j(self, members: IntArray, done: FloatArray, emptied: BoolArray, radio_j: FloatArray) -> FloatArray:
        """Return the energy that members have spent, from the share of each phase that is done, shape (3, m)."""
        charge_j = self.charge_j[members]
        due_j = self.cost_j[:, members] * done + radio_j
        spent_j = np.minimum(np.sum(due_j, axis=0), charge_j)
        return np.where(emptied, charge_j, spent_j)


class Batteries:
    """Charges of the K clients of one run."""

    def __init__(
        self, prices: Prices, *, capacity_j: Values, idle_gain_w: Values, least_j: Values, charge_j: FloatArray
    ) -> None:
        self.prices, self.capacity_j, self.idle_gain_w, self.least_j = prices, capacity_j, idle_gain_w, least_j
        self._charge_j = charge_j.copy()
        self._since_s = np.zeros(self._charge_j.size)
        self._from_s, self._until_s = self._window_s(
            np.arange(self._charge_j.size, dtype=np.int64), self._charge_j, self._since_s
        )

    @property
    def clients(self) -> int:
        return self._charge_j.size

    def charge_j(self, client: IntArray, time_s: float | FloatArray) -> FloatArray:
        """Return each client's charge; during a participation, the charge at its start."""
        idle_s = np.maximum(time_s - self._since_s[client], 0.0)
        gained_j = at(self.idle_gain_w, client) * idle_s
        return np.clip(self._charge_j[client] + gained_j, 0.0, at(self.capacity_j, client))

    def free_s(self, client: IntArray, time_s: float) -> FloatArray:
        """Return from which instant on each client has at least the least charge if it takes no part; inf for never."""
        return np.where(time_s <= self._until_s[client], self._from_s[client], np.inf)

    def holds_until_s(self, client: IntArray, time_s: float) -> tuple[BoolArray, FloatArray]:
        """Return whether each client may be selected, and until when that holds if it takes no part."""
        from_s, until_s = self._from_s[client], self._until_s[client]
        charged = (from_s <= time_s) & (time_s <= until_s)
        changes_s = np.where(charged, np.nextafter(until_s, np.inf), np.where(time_s < from_s, from_s, np.inf))
        return charged, changes_s

    def begin(
        self,
        client: IntArray,
        time_s: float,
        bits: tuple[float | FloatArray, float | FloatArray],
        samples: FloatArray,
        compute_s: FloatArray,
        frequency: FloatArray | None = None,
        transmit_power_dbm: FloatArray | None = None,
    ) -> EnergyDemand:
        """Begin a participation of each client, which lasts until `end`, and return its energy demand."""
        charge_j = self.charge_j(client, time_s)
        prices = self.prices.of(client)
        cost_j = np.empty((_PHASES, client.size))
        cost_j[0] = prices.receive_j_per_bit * bits[0]
        if frequency is None:
            cost_j[1] = prices.sample_j * samples + prices.compute_w * compute_s
        else:
            cost_j[1] = (prices.sample_j * samples + prices.compute_w * compute_s * frequency) * frequency**2
        cost_j[2] = prices.transmit_j_per_bit * bits[1]
        power_w = base_w = None
        if any(np.any(np.greater(price, 0)) for price in (prices.receive_w, prices.transmit_w, prices.base_w)):
            power_w, base_w = np.zeros((2, _PHASES, client.size))
            power_w[0], power_w[2], base_w[0], base_w[2] = prices.receive_w, prices.transmit_w, *[prices.base_w] * 2
            if transmit_power_dbm is not None:
                power_w[2] = np.where(power_w[2] > 0, prices.sending_w(transmit_power_dbm), 0.0)
        self._charge_j[client], self._since_s[client] = charge_j, np.inf
        self._from_s[client] = np.inf
        return EnergyDemand(client, charge_j, cost_j, samples, power_w, base_w, frequency, transmit_power_dbm)

    def end(self, client: IntArray, charge_j: FloatArray, time_s: FloatArray) -> None:
        self._charge_j[client], self._since_s[client] = charge_j, time_s
        self._from_s[client], self._until_s[client] = self._window_s(client, charge_j, time_s)

    def _window_s(self, client: IntArray, charge_j: FloatArray, since_s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return from when on, and until when, idle clients have at least the least charge; all of one shape."""
        least_j, gain_w = at(self.least_j, client), at(self.idle_gain_w, client)
        never_s = np.full(charge_j.size, np.inf)
        # A tiny gain gives an overflow to inf, which is right; where there is none, inf is put in its place.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            late_s = np.where(gain_w > 0, since_s + (least_j - charge_j) / gain_w, never_s)
            until_s = np.where(gain_w < 0, since_s + (charge_j - least_j) / np.negative(gain_w), never_s)
        return np.where(charge_j >= least_j, since_s, late_s), until_s
