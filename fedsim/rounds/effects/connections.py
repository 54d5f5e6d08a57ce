"""Clients that have been silent are released, and set up a connection before their next message."""

import numpy as np

from fedsim.arrays import FloatArray, IntArray, any_of, constant
from fedsim.history.outcomes import COMPUTE, DOWNLINK, UPLINK
from fedsim.network.contracts import Connection
from fedsim.rounds.effects.contract import NEVER, Effect, Members
from fedsim.rounds.plan import Plan
from fedsim.rounds.run import Run


class Connections(Effect):
    """When each client last sent or received: at the start of a run all are idle.

    A client that works, or waits, for longer than the inactivity timer is released between downlink and uplink.
    """

    may_end = False
    phases = frozenset({DOWNLINK, UPLINK})

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._inactivity_s, self._setup_s = constant(connection.inactivity_s), constant(connection.setup_s)

    def begin(self, run: Run) -> None:
        self._silent_from_s = np.full(run.clients, -NEVER)

    def wait_s(self, plan: Plan, phase: int, members: Members) -> tuple[float, FloatArray | float]:
        connection = self._connection
        if type(members) is int and phase == UPLINK and connection.by_downlink:
            quiet_s = plan.spent_s.item(COMPUTE, members) + plan.queue_s.item(UPLINK, members)
            return 0.0, connection.setup_s if quiet_s > connection.inactivity_s else 0.0
        if phase == DOWNLINK and not connection.by_downlink:
            return 0.0, 0.0
        if phase == UPLINK and not connection.by_downlink:
            return 0.0, connection.setup_s
        if phase == UPLINK:
            silent_s = plan.spent_s[COMPUTE, members] + plan.queue_s[UPLINK, members]
        else:
            silent_s = plan.begun_s[DOWNLINK, members] - self._silent_from_s[plan.client[members]]
        released = silent_s > self._inactivity_s
        return 0.0, self._setup_s * released if any_of(released) else 0.0

    def settle(self, plan: Plan, members: IntArray) -> None:
        """Note the last message of each member: its end, or that of its downlink if it was cut in its work."""
        last_s, cut_in = plan.end_s[members], plan.cut_in[members]
        in_work = cut_in == COMPUTE
        if any_of(in_work):
            last_s[in_work] -= plan.spent_s[COMPUTE][members[in_work]]
        if not self._connection.by_downlink:
            last_s[(cut_in == DOWNLINK) | (cut_in == COMPUTE)] = -NEVER
        client = plan.client[members]
        # Those in flight have no end, NaN.
        self._silent_from_s[client] = np.fmax(self._silent_from_s[client], last_s)
