"""What no server knows: the future, as oracles may ask for it."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.rounds.server.context import ServerContext
from fedsim.selectors import OracleView


@dataclass(frozen=True)
class OracleKnowledge:
    """The future of the candidates of one round, worked out when it is asked for.

    Attributes
    ----------
    context : ServerContext
    view : what the oracle sees otherwise
    availability_draw : draw of availability that holds in the round
    """

    context: ServerContext
    view: OracleView
    availability_draw: int

    def added(self) -> OracleView:
        """Return the view with its questions about the future."""
        return replace(self.view, coming_duration_s=self.duration_s, stays=self.stays)

    def duration_s(self) -> FloatArray:
        """Return how long a participation that starts now will take each candidate; on shared media the mean alone."""
        client, number = self.view.client, self.view.round
        if self.context.policy.traits.concurrency is None:
            return self._turn_s(client, number)
        # An asynchronous server sends each client with the luck of its own next turn.
        turn, duration_s = self.view.participations + 1, np.zeros(client.size)
        for number in np.unique(turn).tolist():
            of_them = np.flatnonzero(turn == number)
            duration_s[of_them] = self._turn_s(client[of_them], number)
        return duration_s

    def _turn_s(self, client: IntArray, turn: int) -> FloatArray:
        """Return how long a participation of some clients with the luck of a turn takes."""
        context, now_s = self.context, np.full(client.size, self.view.time_s)
        links, task = context.clients.links, context.clients.workload
        downlink_s = (
            links.expected_downlink_s(task.down_bits)[client]
            if links.shared.down
            else links.downlink_s(client, turn, now_s, task.down_bits)
        )
        compute_s = context.clients.compute.duration_s(client, turn, task.samples(client))
        uplink_s = (
            links.expected_uplink_s(task.up_bits)[client]
            if links.shared.up
            else links.uplink_s(client, turn, now_s + downlink_s + compute_s, task.up_bits)
        )
        return np.asarray(downlink_s + compute_s + uplink_s)

    def stays(self, from_s: FloatArray, to_s: FloatArray) -> NDArray[np.bool_]:
        """Return which candidates will be there from so many seconds after now to so many, without a gap."""
        presence, client, draw = self.context.availability, self.view.client, self.availability_draw
        starts_s = self.view.time_s + np.broadcast_to(from_s, client.shape)
        lasts_s = np.broadcast_to(to_s, client.shape) - np.broadcast_to(from_s, client.shape)
        there = np.zeros(client.size, dtype=bool)
        for start_s in np.unique(starts_s).tolist():
            of_them = np.flatnonzero(starts_s == start_s)
            these, task_s = client[of_them], lasts_s[of_them]
            available = presence.available(these, start_s, draw)
            there[of_them] = available & (presence.leaves_after_s(these, start_s, draw, task_s) >= task_s)
        return there
