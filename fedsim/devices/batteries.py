"""The batteries of one run: how full they are, and what a cohort draws from them.

Between two participations a charge is arithmetic, ``charge + gain * elapsed`` within 0 and the capacity, worked out
when somebody asks for it; no event and no work is spent on clients that nobody asks about.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray

NEVER_EMPTY: Final = 3
"""In the place of a phase: the battery lasts through all of them."""
_SLACK_ULPS: Final = 8


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What transfers and work draw.

    Attributes
    ----------
    receive_j_per_bit, transmit_j_per_bit : of the downlink and of the uplink
    sample_j : of the operations on one sample, 0 where work is paid for by the second
    compute_w : of a second of work, 0 where work is paid for by the operation
    """

    receive_j_per_bit: float
    transmit_j_per_bit: float
    sample_j: float
    compute_w: float


@dataclass(frozen=True)
class EnergyDemand:
    """What the participations of a cohort draw from their batteries; arrays over its n members.

    Attributes
    ----------
    client : ids, shape (n,)
    charge_j : at the beginning, shape (n,)
    cost_j : of downlink, work and uplink if nobody cuts them short, shape (3, n)
    samples : passed in the whole work, shape (n,)
    """

    client: IntArray
    charge_j: FloatArray
    cost_j: FloatArray
    samples: FloatArray

    def runs_empty(self) -> tuple[IntArray, FloatArray]:
        """Return in which phase each battery runs empty, `NEVER_EMPTY` for none, and for which share of it it pays.

        A charge that falls short by no more than rounding pays.
        """
        left_j = self.charge_j
        slack_j = _SLACK_ULPS * np.spacing(self.charge_j)
        phase = np.full(self.client.size, NEVER_EMPTY, dtype=np.int64)
        share = np.ones(self.client.size)
        for number, cost_j in enumerate(self.cost_j):
            short = (phase == NEVER_EMPTY) & (cost_j > left_j + slack_j)
            share[short] = left_j[short] / cost_j[short]
            phase[short] = number
            left_j = np.maximum(left_j - cost_j, 0.0)
        return phase, share

    def spent_j(self, members: IntArray, done: FloatArray, emptied: BoolArray) -> FloatArray:
        """Return what some members have spent, shape (m,).

        Parameters
        ----------
        members : positions in the cohort, shape (m,)
        done : share of each phase that they did, shape (3, m)
        emptied : whose battery ran empty, shape (m,)
        """
        charge_j = self.charge_j[members]
        spent_j = np.minimum(np.sum(self.cost_j[:, members] * done, axis=0), charge_j)
        return np.where(emptied, charge_j, spent_j)


class Batteries:
    """The charges of all K clients of one run.

    Parameters
    ----------
    prices : Prices
    capacity_j : of every battery
    idle_gain_w : by how much a charge rises, or falls if negative, while its client takes no part
    least_j : charge that a candidate needs, > 0
    charge_j : at time 0, shape (K,)
    """

    def __init__(
        self, prices: Prices, *, capacity_j: float, idle_gain_w: float, least_j: float, charge_j: FloatArray
    ) -> None:
        self.prices, self.capacity_j, self.idle_gain_w, self.least_j = prices, capacity_j, idle_gain_w, least_j
        self._charge_j = np.array(charge_j, dtype=np.float64)
        self._since_s = np.zeros(self._charge_j.size)
        self._able_from_s, self._able_until_s = self._able(self._charge_j, self._since_s)

    @property
    def clients(self) -> int:
        """How many there are."""
        return self._charge_j.size

    def charge_j(self, client: IntArray, time_s: float | FloatArray) -> FloatArray:
        """Return each client's charge at an instant not before it was last changed; of one at work, as it began."""
        idle_s = np.maximum(time_s - self._since_s[client], 0.0)
        return np.clip(self._charge_j[client] + self.idle_gain_w * idle_s, 0.0, self.capacity_j)

    def able_s(self) -> tuple[FloatArray, FloatArray]:
        """Return from when until when each client is charged enough if it takes no part, both of shape (K,).

        `inf` stands for never in the one and for ever in the other; a client at work is not able until it is done.
        """
        return self._able_from_s, self._able_until_s

    def able(self, client: IntArray, time_s: float) -> BoolArray:
        """Return whether each client is charged enough to take part."""
        return (self._able_from_s[client] <= time_s) & (time_s <= self._able_until_s[client])

    def begin(
        self,
        client: IntArray,
        time_s: float,
        bits: tuple[float, float],
        samples: FloatArray,
        compute_s: FloatArray,
    ) -> EnergyDemand:
        """Let clients begin a participation, and return what it draws; until it is settled they are at work.

        Parameters
        ----------
        client : ids, shape (n,)
        time_s : when they begin
        bits : sizes of the message down and of the message up
        samples : that each is to pass, shape (n,)
        compute_s : how long the work of each takes, shape (n,)
        """
        charge_j = self.charge_j(client, time_s)
        prices = self.prices
        cost_j = np.empty((NEVER_EMPTY, client.size))
        cost_j[0] = prices.receive_j_per_bit * bits[0]
        cost_j[1] = prices.sample_j * samples + prices.compute_w * compute_s
        cost_j[2] = prices.transmit_j_per_bit * bits[1]
        self._charge_j[client], self._since_s[client] = charge_j, np.inf
        self._able_from_s[client] = np.inf
        return EnergyDemand(client, charge_j, cost_j, samples)

    def settle(self, client: IntArray, charge_j: FloatArray, time_s: FloatArray) -> None:
        """Write down with which charge each client's participation ended, and when."""
        self._charge_j[client], self._since_s[client] = charge_j, time_s
        self._able_from_s[client], self._able_until_s[client] = self._able(charge_j, time_s)

    def _able(self, charge_j: FloatArray, since_s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return from when until when charges suffice that are left to themselves."""
        enough, gain_w = charge_j >= self.least_j, self.idle_gain_w
        never_s = np.full(charge_j.size, np.inf)
        # A gain of next to nothing takes for ever, which is what inf says.
        with np.errstate(over="ignore"):
            late_s = since_s + (self.least_j - charge_j) / gain_w if gain_w > 0 else never_s
            until_s = since_s + (charge_j - self.least_j) / -gain_w if gain_w < 0 else never_s
        return np.where(enough, since_s, late_s), until_s
