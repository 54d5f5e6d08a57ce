"""The columns of views that are made when a selector reads them: fading, powers and batteries."""

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import Batteries
from fedsim.devices.contracts import ComputeTimes
from fedsim.errors import PartError
from fedsim.network import Links
from fedsim.per_client import Values, at
from fedsim.rounds.clients.expected_times import ExpectedTimes
from fedsim.rounds.clients.workload import Workload

Column = Callable[[IntArray, float], FloatArray]
"""Returns a column for ids of shape (n,) at an instant, of shape (n,)."""


def columns_at_request(
    links: Links, compute: ComputeTimes, workload: Workload, batteries: Batteries | None
) -> dict[str, Column]:
    """Return the functions of the columns that a run has, by their names."""
    columns: dict[str, Column] = {}
    one = np.zeros(1, dtype=np.int64)
    if links.uplink_gain(one, 0.0) is not None:
        columns["fading_gain"] = lambda client, time_s: _stated("uplink_gain", links.uplink_gain(client, time_s))
    if links.uplink_power_dbm(one) is not None:
        columns["full_power_dbm"] = lambda client, _: _stated("uplink_power_dbm", links.uplink_power_dbm(client))
    if batteries is not None:
        expected = partial(ExpectedTimes.of, links, compute, workload)
        columns |= DeclaredEnergies(batteries, workload, links, expected).columns()
    return columns


def _stated(name: str, values: FloatArray | None) -> FloatArray:
    if values is None:
        raise PartError(f"network: {name} returned None after an array", "allowed: one of the two for a whole run")
    return values


class DeclaredEnergies:
    """The columns of a view about batteries, each a function of ids and the instant."""

    def __init__(
        self, batteries: Batteries, workload: Workload, links: Links, expected: Callable[[], ExpectedTimes]
    ) -> None:
        self._batteries, self._workload, self._links, self._expected = batteries, workload, links, expected

    def columns(self) -> dict[str, Callable[[IntArray, float], FloatArray]]:
        return {
            "charge_j": self._batteries.charge_j,
            "capacity_j": lambda client, _: _each(at(self._batteries.capacity_j, client), client),
            "charging_w": lambda client, _: _each(at(self._batteries.idle_gain_w, client), client),
            "participation_j": lambda client, _: self._mean_j[client],
        }

    @cached_property
    def _mean_j(self) -> FloatArray:
        """Mean joules of a participation of every client."""
        everyone = np.arange(self._batteries.clients, dtype=np.int64)
        on_air_s = expected_on_air_s(self._links, (self._workload.down_bits, self._workload.up_bits))
        phases_s = self._expected().features[:, :3].T
        return participation_j(self._batteries, self._workload, everyone, phases_s, np.minimum(on_air_s, phases_s[::2]))


def expected_on_air_s(links: Links, bits: tuple[float, float]) -> FloatArray:
    """Return the mean seconds on the air of messages down and up of every client, shape (2, K)."""
    return np.stack([links.expected_on_air_s(size, up=up) for up, size in zip((False, True), bits, strict=True)])


def participation_j(
    batteries: Batteries, workload: Workload, client: IntArray, phases_s: FloatArray, on_air_s: FloatArray
) -> FloatArray:
    """Return the joules that whole participations take from batteries; infinite seconds count only where they cost.

    Seconds of the three phases have the shape (3, n), and those on the air, down and up, (2, n).
    """
    prices, (downlink_s, compute_s, uplink_s) = batteries.prices.of(client), phases_s
    radio_j = prices.receive_j_per_bit * workload.down_bits + prices.transmit_j_per_bit * workload.up_bits
    air_j = _paid_j(prices.receive_w, on_air_s[0]) + _paid_j(prices.transmit_w, on_air_s[1])
    air_j += _paid_j(prices.base_w, downlink_s + uplink_s)
    work_j = prices.sample_j * workload.samples[client] + _paid_j(prices.compute_w, compute_s)
    return _each(radio_j + air_j + work_j, client)


def _paid_j(power_w: Values, seconds: FloatArray) -> FloatArray:
    """Return power times seconds; no power costs nothing, however long it takes."""
    return np.multiply(power_w, seconds, out=np.zeros(seconds.size), where=np.greater(power_w, 0))


def _each(values: FloatArray | float, client: IntArray) -> FloatArray:
    return np.broadcast_to(np.asarray(values, dtype=np.float64), client.shape)
