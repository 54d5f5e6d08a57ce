"""The columns of views that are made when a selector reads them: fading, powers and batteries."""

from collections.abc import Callable
from functools import partial

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import Batteries
from fedsim.devices.contracts import ComputeTimes
from fedsim.errors import PartError
from fedsim.network import Links
from fedsim.rounds.clients.expected_times import ExpectedTimes
from fedsim.rounds.clients.workload import Workload
from fedsim.rounds.server.energies import DeclaredEnergies

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
