"""Connections of clients to the network: which of them have been released, and set one up before their next message."""

from typing import Final

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray, filled
from fedsim.history.outcomes import COMPUTE, DOWNLINK
from fedsim.network.contracts import Connection
from fedsim.rounds.clients.participation import Participations

_NEVER_S: Final = -np.inf


class Connections:
    """When each of the K clients of a run last sent or received.

    At the start of a run all of them are idle. A client that works for longer than the inactivity timer is released
    between its downlink and its uplink.
    """

    def __init__(self, connection: Connection, clients: int) -> None:
        self.connection = connection
        self._silent_from_s = np.full(clients, _NEVER_S)

    def before_downlink_s(self, client: IntArray, start_s: float | FloatArray) -> FloatArray:
        if not self.connection.by_downlink:
            return np.zeros(client.size)
        return self._setup_s(start_s - self._silent_from_s[client])

    def before_uplink_s(self, silent_s: FloatArray) -> FloatArray:
        """Return the seconds that clients need before an uplink, after a silence since their downlink."""
        if not self.connection.by_downlink:
            return filled(silent_s.size, self.connection.setup_s)
        return self._setup_s(silent_s)

    def idle_before_uplink(self, silent_s: FloatArray) -> BoolArray:
        if not self.connection.by_downlink:
            return np.ones(silent_s.size, dtype=bool)
        return silent_s > self.connection.inactivity_s

    def ended(self, client: IntArray, participations: Participations, members: IntArray) -> None:
        """Note the last messages of participations that have ended."""
        ended_s, cut_in = participations.ended_s[members], participations.cut_in[members]
        heard_s = np.where(cut_in == COMPUTE, ended_s - participations.spent_s[COMPUTE, members], ended_s)
        if not self.connection.by_downlink:
            heard_s[(cut_in == DOWNLINK) | (cut_in == COMPUTE)] = _NEVER_S
        # Those in flight have no end, NaN.
        chosen = client[members]
        self._silent_from_s[chosen] = np.fmax(self._silent_from_s[chosen], heard_s)

    def _setup_s(self, silent_s: FloatArray) -> FloatArray:
        return np.where(silent_s > self.connection.inactivity_s, self.connection.setup_s, 0.0)
