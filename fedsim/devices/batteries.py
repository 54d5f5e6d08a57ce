"""The batteries of one run: their charge, and the energy that a cohort takes from them.

Between two participations a charge is arithmetic, ``charge + gain * elapsed`` within 0 and the capacity, evaluated on
request; idle clients cost no event and no work.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.per_client import Values, at
from fedsim.units import db_to_linear

NEVER_EMPTY: Final = 3
"""In place of a phase: the battery lasts through all phases."""
_SLACK_ULPS: Final = 8


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Energy prices of transfers and work: each a number for all clients, or one for each, shape (K,).

    Attributes
    ----------
    receive_j_per_bit, transmit_j_per_bit : energy of a bit of the downlink and of the uplink
    receive_w, transmit_w : power of the radio during the downlink and during the uplink, beside the energy of bits
    sample_j : energy of the operations on one sample; 0 where the cost of work follows from its time
    compute_w : power of work; 0 where the cost of work follows from its operations
    amplifier_efficiency, circuit_w : of a sender whose radiated power is known, see `sending_w`

    Examples
    --------
    >>> prices = Prices(receive_j_per_bit=0.0, transmit_j_per_bit=0.0, sample_j=np.array([0.1, 0.4]), compute_w=0.0,
    ...                 amplifier_efficiency=0.5, circuit_w=0.1)
    >>> prices.of(np.array([1])).sample_j.tolist()
    [0.4]
    >>> round(float(prices.sending_w(20.0)), 6)  # 20 dBm are 0.1 W
    0.3
    """

    receive_j_per_bit: Values
    transmit_j_per_bit: Values
    sample_j: Values
    compute_w: Values
    receive_w: Values = 0.0
    transmit_w: Values = 0.0
    amplifier_efficiency: Values = 1.0
    circuit_w: Values = 0.0

    def of(self, client: IntArray) -> "Prices":
        """Return the prices of some clients, shape (n,) where they differ.

        Parameters
        ----------
        client : ids, shape (n,)
        """
        return Prices(
            receive_j_per_bit=at(self.receive_j_per_bit, client),
            transmit_j_per_bit=at(self.transmit_j_per_bit, client),
            sample_j=at(self.sample_j, client),
            compute_w=at(self.compute_w, client),
            receive_w=at(self.receive_w, client),
            transmit_w=at(self.transmit_w, client),
            amplifier_efficiency=at(self.amplifier_efficiency, client),
            circuit_w=at(self.circuit_w, client),
        )

    def sending_w(self, radiated_dbm: Values) -> Values:
        """Return the power that a sender draws: the radiated power over the amplifier's efficiency, and the circuit.

        Parameters
        ----------
        radiated_dbm : power on the air in dBm, one number or shape (n,)
        """
        return db_to_linear(radiated_dbm) * 1e-3 / self.amplifier_efficiency + self.circuit_w


@dataclass(frozen=True)
class EnergyDemand:
    """Energy demand of the participations of a cohort with n members.

    Attributes
    ----------
    client : ids, shape (n,)
    charge_j : charge at the beginning, shape (n,)
    cost_j : energy of the bits down, of the work and of the bits up if they are completed, shape (3, n)
    samples : samples passed in the complete work, shape (n,)
    power_w : power of the radio during each phase, shape (3, n); None where no time on the air costs energy
    frequency : share of the full clock frequency at which each member works, shape (n,); None for all of it
    transmit_power_dbm : radiated power that each member was given, shape (n,); None for its own

    Examples
    --------
    >>> cost_j = np.array([[1.0, 1.0], [4.0, 4.0], [2.0, 2.0]])  # downlink, work and uplink of two members
    >>> demand = EnergyDemand(np.array([7, 9]), np.array([10.0, 3.0]), cost_j, samples=np.array([50.0, 50.0]))
    >>> phase, share = demand.runs_empty()
    >>> phase.tolist(), share.tolist()  # the second has 2 J of 4 J for its work
    ([3, 1], [1.0, 0.5])
    """

    client: IntArray
    charge_j: FloatArray
    cost_j: FloatArray
    samples: FloatArray
    power_w: FloatArray | None = None
    frequency: FloatArray | None = None
    transmit_power_dbm: FloatArray | None = None

    def of(self, part: IntArray) -> "EnergyDemand":
        """Return the demand of some members, by their positions, shape (k,).

        Parameters
        ----------
        part : positions of the members, shape (k,)
        """
        power_w = None if self.power_w is None else self.power_w[:, part]
        frequency = None if self.frequency is None else self.frequency[part]
        power_dbm = None if self.transmit_power_dbm is None else self.transmit_power_dbm[part]
        return EnergyDemand(
            self.client[part],
            self.charge_j[part],
            self.cost_j[:, part],
            self.samples[part],
            power_w,
            frequency,
            power_dbm,
        )

    def runs_empty(self, planned_s: FloatArray | None = None) -> tuple[IntArray, FloatArray]:
        """Return the phase in which each battery runs empty, and the share of its energy that the charge covers.

        A charge that falls short by rounding alone is enough.

        Parameters
        ----------
        planned_s : durations of the phases, shape (3, n), inf where unknown: such a phase costs its bits alone; read
            where time on the air costs energy

        Returns
        -------
        phase : 0, 1, 2 or `NEVER_EMPTY`, shape (n,)
        share : in [0, 1], shape (n,); 1 where the battery lasts
        """
        left_j, due_j = self.charge_j, self.cost_j
        if self.power_w is not None and planned_s is not None:
            due_j = due_j + self.power_w * np.where(np.isinf(planned_s), 0.0, planned_s)
        slack_j = _SLACK_ULPS * np.spacing(self.charge_j)
        phase = np.full(self.client.size, NEVER_EMPTY)
        share = np.ones(self.client.size)
        for number, cost_j in enumerate(due_j):
            short = (phase == NEVER_EMPTY) & (cost_j > left_j + slack_j)
            share[short] = left_j[short] / cost_j[short]
            phase[short] = number
            left_j = np.maximum(left_j - cost_j, 0.0)
        return phase, share

    def radio_w(self, i: int, phase: int) -> float:
        """Return the power of the radio of a member in a phase.

        Parameters
        ----------
        i : position of the member
        phase : 0 for the downlink, 1 for the work, 2 for the uplink
        """
        return 0.0 if self.power_w is None else float(self.power_w[phase, i])

    def per_bit_j(self, i: int, phase: int, bits: float) -> float:
        """Return the energy of a bit of a member's message of a size in a phase.

        Parameters
        ----------
        i : position of the member
        phase : 0 for the downlink, 1 for the work, 2 for the uplink
        bits : size of the message
        """
        return float(self.cost_j[phase, i]) / bits if bits > 0 else 0.0

    def phase_j(self, i: int, phase: int, planned_s: float) -> float:
        """Return the energy of a whole phase of a member; of unknown duration, inf, that of its bits alone.

        Parameters
        ----------
        i : position of the member
        phase : 0 for the downlink, 1 for the work, 2 for the uplink
        planned_s : duration of the phase in seconds; inf if it is not known
        """
        radio_w = self.radio_w(i, phase)
        return float(self.cost_j[phase, i]) + (radio_w * planned_s if radio_w > 0 and planned_s < np.inf else 0.0)

    def left_j(self, i: int, phase: int, spent_s: FloatArray) -> float:
        """Return what is left of a member's charge after the phases before one, whose seconds are given, shape (3,).

        Parameters
        ----------
        i : position of the member
        phase : 0 for the downlink, 1 for the work, 2 for the uplink
        spent_s : seconds of each phase, shape (3,)
        """
        before = sum(self.phase_j(i, at, float(spent_s[at])) for at in range(phase))
        return max(float(self.charge_j[i]) - before, 0.0)

    def slack_j(self, i: int) -> float:
        """Return by how much a member's charge may fall short and yet be enough.

        Parameters
        ----------
        i : position of the member
        """
        return _SLACK_ULPS * float(np.spacing(self.charge_j[i]))

    def spent_j(self, members: IntArray, done: FloatArray, emptied: BoolArray, spent_s: FloatArray) -> FloatArray:
        """Return the energy in joules that some members have spent, shape (m,).

        Parameters
        ----------
        members : positions in the cohort, shape (m,)
        done : completed share of each phase's bits or work, shape (3, m)
        emptied : whether the battery ran empty, shape (m,)
        spent_s : seconds of each phase, shape (3, m)
        """
        charge_j = self.charge_j[members]
        due_j = self.cost_j[:, members] * done
        if self.power_w is not None:
            due_j += self.power_w[:, members] * spent_s
        spent_j = np.minimum(np.sum(due_j, axis=0), charge_j)
        return np.where(emptied, charge_j, spent_j)


class Batteries:
    """Charges of the K clients of one run.

    What may differ between clients is a number for all, or an array of shape (K,).

    Parameters
    ----------
    prices : energy prices of transfers and work
    capacity_j : capacity of a battery
    idle_gain_w : power that charges a battery, or discharges it if negative, while its client takes no part
    least_j : charge that a candidate needs, > 0
    charge_j : charges at time 0, shape (K,)

    Examples
    --------
    >>> prices = Prices(receive_j_per_bit=0.0, transmit_j_per_bit=1e-6, sample_j=0.1, compute_w=0.0)
    >>> phones = Batteries(prices, capacity_j=100.0, idle_gain_w=2.0, least_j=15.0, charge_j=np.array([60.0]))
    >>> phones.charge_j(np.array([0]), time_s=5.0).tolist(), phones.charge_j(np.array([0]), time_s=60.0).tolist()
    ([70.0], [100.0])
    >>> demand = phones.begin(np.array([0]), 5.0, (1e6, 1e6), samples=np.array([200.0]), compute_s=np.array([2.0]))
    >>> demand.cost_j[:, 0].tolist(), phones.charged(np.array([0]), 5.0).tolist()
    ([0.0, 20.0, 1.0], [False])
    """

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
        """Number of clients K."""
        return self._charge_j.size

    def charge_j(self, client: IntArray, time_s: float | FloatArray) -> FloatArray:
        """Return each client's charge in joules, shape (n,); during a participation, the charge at its start.

        Parameters
        ----------
        client : ids, shape (n,)
        time_s : instant, not before the client's last participation ended; a number, or shape (n,)
        """
        idle_s = np.maximum(time_s - self._since_s[client], 0.0)
        gained_j = at(self.idle_gain_w, client) * idle_s
        return np.clip(self._charge_j[client] + gained_j, 0.0, at(self.capacity_j, client))

    def charged_s(self) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of the time in which each idle client has at least the least charge, both of shape (K,).

        `inf` means never in the first array and without end in the second. The first is `inf` for a client in a
        participation.
        """
        return self._from_s, self._until_s

    def charged(self, client: IntArray, time_s: float) -> BoolArray:
        """Return whether each client has at least the least charge and takes no part at an instant, shape (n,).

        Parameters
        ----------
        client : ids, shape (n,)
        time_s : instant, >= 0
        """
        return (self._from_s[client] <= time_s) & (time_s <= self._until_s[client])

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
        """Begin a participation of each client, which lasts until `end`, and return its energy demand.

        Parameters
        ----------
        client : ids, shape (n,)
        time_s : start of the participations
        bits : sizes of the message down and of the message up; of each client, shape (n,), where they differ
        samples : samples to pass, shape (n,)
        compute_s : duration of the work, shape (n,)
        frequency : share of the full clock frequency at which each works, in (0, 1], shape (n,); None for all of it
            Power grows with the cube of the frequency, as the voltage does with it, so the energy of an operation with
            its square.
        transmit_power_dbm : radiated power that each was given for its uplink, shape (n,); None for its own
            Where seconds on the air cost energy, `Prices.sending_w` of it takes the place of the client's own power.
        """
        charge_j = self.charge_j(client, time_s)
        prices = self.prices.of(client)
        cost_j = np.empty((NEVER_EMPTY, client.size))
        cost_j[0] = prices.receive_j_per_bit * bits[0]
        if frequency is None:
            cost_j[1] = prices.sample_j * samples + prices.compute_w * compute_s
        else:
            cost_j[1] = (prices.sample_j * samples + prices.compute_w * compute_s * frequency) * frequency**2
        cost_j[2] = prices.transmit_j_per_bit * bits[1]
        power_w = None
        if np.any(np.greater(prices.receive_w, 0)) or np.any(np.greater(prices.transmit_w, 0)):
            power_w = np.zeros((NEVER_EMPTY, client.size))
            power_w[0], power_w[2] = prices.receive_w, prices.transmit_w
            if transmit_power_dbm is not None:
                power_w[2] = np.where(power_w[2] > 0, prices.sending_w(transmit_power_dbm), 0.0)
        self._charge_j[client], self._since_s[client] = charge_j, np.inf
        self._from_s[client] = np.inf
        return EnergyDemand(client, charge_j, cost_j, samples, power_w, frequency, transmit_power_dbm)

    def end(self, client: IntArray, charge_j: FloatArray, time_s: FloatArray) -> None:
        """End the participation of each client.

        Parameters
        ----------
        client : ids, shape (n,)
        charge_j : charge at the end, shape (n,)
        time_s : instant of the end, shape (n,)
        """
        self._charge_j[client], self._since_s[client] = charge_j, time_s
        self._from_s[client], self._until_s[client] = self._window_s(client, charge_j, time_s)

    def _window_s(self, client: IntArray, charge_j: FloatArray, since_s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of `charged_s` for clients with given charges at given instants, all of one shape."""
        least_j, gain_w = at(self.least_j, client), at(self.idle_gain_w, client)
        never_s = np.full(charge_j.size, np.inf)
        # A tiny gain gives an overflow to inf, which is the right answer; where there is none, inf is put in its place.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            late_s = np.where(gain_w > 0, since_s + (least_j - charge_j) / gain_w, never_s)
            until_s = np.where(gain_w < 0, since_s + (charge_j - least_j) / np.negative(gain_w), never_s)
        return np.where(charge_j >= least_j, since_s, late_s), until_s
