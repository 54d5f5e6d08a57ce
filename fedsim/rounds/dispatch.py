"""How a cohort is sent on its way: every member's waits planned as arrays, its flows and its upload's price.

A `World` is everything that the processes of one run meet.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from simpy import Environment

from fedsim.devices import ComputeTimes, Dropout, Presence
from fedsim.errors import ScenarioError
from fedsim.learning import Learner, Release
from fedsim.network import Links
from fedsim.network.flow import Flow
from fedsim.privacy import Ledger
from fedsim.rounds.knowledge import Knowledge
from fedsim.rounds.medium import Medium
from fedsim.rounds.participation import DOWNLINK, PHASES, UPLINK, Begin, OpenRound
from fedsim.rounds.policies import Policy
from fedsim.selectors import Cohort, Selector
from fedsim.streams import Streams


@dataclass(frozen=True, kw_only=True)
class World:
    """Everything a server process meets in one run."""

    streams: Streams
    links: Links
    compute: ComputeTimes
    presence: Presence
    dropout: Dropout
    learner: Learner
    selector: Selector
    policy: Policy
    ledger: Ledger | None
    knowledge: Knowledge


class Dispatcher:
    """Sends cohorts on their way.

    Parameters
    ----------
    env : Environment
    world : World

    Attributes
    ----------
    bits : size of a message in either direction
    medium : which directions of the links are shared, opened on the clock
    """

    def __init__(self, env: Environment, world: World) -> None:
        self.env, self.world = env, world
        self.bits = world.learner.model_bits or 0.0
        self.medium = Medium.of(world.links, env, self.bits)

    def send(self, number: int, opens_s: float, cohort: Cohort, releases: dict[int, Release]) -> OpenRound:
        """Plan every member's waits as arrays and start its process.

        Parameters
        ----------
        number : round, from 1
        opens_s : instant at which the clients' presence is looked at
        cohort : Cohort
        releases : filled with the release of every member whose upload starts, by position in the cohort
        """
        world, client, bits = self.world, cohort.client, self.bits
        start_s = np.full(client.size, self.env.now)
        samples = world.learner.work_samples(client, cohort.work)
        compute_s = world.compute.duration_s(client, number, samples)
        shared_s = np.full(client.size, np.inf)
        downlink_s = shared_s if self.medium.downlink else world.links.downlink_s(client, number, start_s, bits)
        after_s = start_s + downlink_s + compute_s
        # The start of an upload is not known in advance after a shared downlink.
        open_uplink = self.medium.uplink or self.medium.downlink
        uplink_s = shared_s if open_uplink else world.links.uplink_s(client, number, after_s, bits)
        planned_s = np.stack([downlink_s, compute_s, uplink_s])
        self._check_times(number, client, planned_s)
        leaves_after_s = np.minimum(
            world.dropout.time_to_dropout_s(client, number, world.streams, planned_s),
            world.presence.leaves_after_s(client, opens_s, number, planned_s.sum(axis=0)),
        )
        begin = self._beginnings(number, client, uplink_s.tolist(), releases)
        return OpenRound(self.env, planned_s, leaves_after_s, begin, bits)

    def _beginnings(
        self, number: int, client: NDArray[np.int64], uplink_s: list[float], releases: dict[int, Release]
    ) -> dict[int, Begin]:
        """Return what happens when a member enters a phase: flows start, and uploads charge privacy."""
        begin: dict[int, Begin] = {}
        world, medium, bits, ids = self.world, self.medium, self.bits, client.tolist()

        def upload(i: int) -> Flow | float:
            if world.ledger is not None:
                releases[i] = Release(*world.ledger.charge(ids[i]))
            if medium.uplink is not None:
                return medium.uplink(ids[i], bits)
            if medium.downlink is not None:
                now_s = np.array([self.env.now])
                return float(world.links.uplink_s(client[i : i + 1], number, now_s, bits)[0])
            return uplink_s[i]

        if (downlink := medium.downlink) is not None:
            begin[DOWNLINK] = lambda i: downlink(ids[i], bits)
        if medium.air is not None or world.ledger is not None:
            begin[UPLINK] = upload
        return begin

    def _check_times(self, number: int, client: NDArray[np.int64], planned_s: NDArray[np.float64]) -> None:
        """Refuse times that are none, and a wait for somebody who will never be done."""
        endless = not self.world.policy.ends_without_everyone
        never = np.isinf(planned_s)
        if self.medium.never is not None:
            never[[DOWNLINK, UPLINK]] = self.medium.never[:, client]
        wrong = ~(planned_s >= 0) | (endless & never)
        if wrong.any():
            phase, i = (int(index[0]) for index in np.nonzero(wrong))
            waits = endless and never[phase, i]
            why = "the policy waits for everyone; choose one with a deadline" if waits else "times are at least 0"
            raise ScenarioError(
                f"round {number}: the {PHASES[phase]} of client {client[i]} would take {planned_s[phase, i]} s; {why}"
            )
