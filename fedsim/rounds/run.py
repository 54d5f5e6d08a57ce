"""What the participations of a run stand on: clock, random streams, links, medium and compute times."""

from functools import partial
from typing import cast

import numpy as np
from simpy import Environment

from fedsim.arrays import FloatArray, IntArray, first_at_least
from fedsim.devices import ComputeTimes
from fedsim.history.outcomes import COMPUTE, DOWNLINK, UPLINK
from fedsim.network import Links
from fedsim.network.medium.delayed import AfterSetUp, Delay
from fedsim.network.transfers import SharedMedium, Transfer
from fedsim.per_client import at, by_value, is_one
from fedsim.rounds.plan import Plan
from fedsim.streams import Streams


class Run:
    """The parts of one run with K clients.

    Attributes
    ----------
    env : clock
    streams, links, compute : random streams, links and compute times
    clients : K
    shared : whether downlink, work and uplink take place on a medium that clients share
    medium : that medium; None where clients share nothing
    """

    def __init__(self, env: Environment, streams: Streams, links: Links, compute: ComputeTimes, clients: int) -> None:
        self.env, self.streams, self.links, self.compute, self.clients = env, streams, links, compute, clients
        self.shared = links.shared.down, False, links.shared.up
        self.medium: SharedMedium | None = links.open(env) if any(self.shared) else None
        self._setups: dict[float, Delay] = {}

    def seconds(self, plan: Plan, phase: int, members: IntArray | slice, start_s: FloatArray) -> FloatArray:
        """Return how long members work, or their own links take for their messages, shape (m,)."""
        if phase == COMPUTE:
            return plan.compute_s[members] * plan.work[members]
        links = self.links if phase == DOWNLINK or plan.links is None else plan.links
        take_s = links.downlink_s if phase == DOWNLINK else links.uplink_s
        client, bits = plan.client[members], plan.bits[phase // 2]
        if is_one(bits):
            return take_s(client, plan.draw, start_s, bits)
        return by_value(
            np.asarray(bits)[members], lambda some, size: take_s(client[some], plan.draw, start_s[some], size)
        )

    def carried(
        self, plan: Plan, phase: int, members: IntArray, start_s: FloatArray, elapsed_s: FloatArray
    ) -> FloatArray:
        """Return the bits that own links have carried some seconds after a phase began, none during a set-up."""
        links = self.links if phase == DOWNLINK or plan.links is None else plan.links
        client, bits, up = plan.client[members], at(plan.bits[phase // 2], members), phase == UPLINK
        setup_s = plan.setup_s[phase, members]
        begin_s, left_s = start_s + setup_s, elapsed_s - setup_s
        sent_s = np.maximum(left_s, 0.0)
        found = by_value(
            bits,
            lambda some, size: links.carried_bits(client[some], plan.draw, begin_s[some], sent_s[some], size, up=up),
        )
        return np.where((setup_s > 0) & (left_s <= 0), 0.0, found)

    def on_air_s(
        self, plan: Plan, phase: int, members: IntArray, start_s: FloatArray, elapsed_s: FloatArray
    ) -> FloatArray:
        """Return the seconds on the air over own links some seconds after a phase began, those of a set-up included."""
        links = self.links if phase == DOWNLINK or plan.links is None else plan.links
        client, bits, up = plan.client[members], at(plan.bits[phase // 2], members), phase == UPLINK
        air_s: FloatArray = np.minimum(elapsed_s, plan.setup_s[phase, members])
        sending = np.flatnonzero((elapsed_s > air_s) & np.isfinite(elapsed_s))
        begin_s, left_s, sizes = start_s + air_s, elapsed_s - air_s, np.broadcast_to(bits, client.shape)

        def of(some: IntArray | slice, size: float) -> FloatArray:
            k = sending[some]
            return links.on_air_s(client[k], plan.draw, begin_s[k], left_s[k], size, up=up)

        if sending.size:
            air_s[sending] += by_value(sizes[sending], of)
        return air_s

    def transfer(self, plan: Plan, phase: int, i: int, bits: float, setup_s: float = 0.0) -> Transfer:
        """Start the transfer of a member over the shared medium, or the set-up before it."""
        medium, client = cast(SharedMedium, self.medium), int(plan.client[i])
        start = medium.downlink if phase == DOWNLINK else medium.uplink
        if setup_s <= 0:
            return start(client, bits)
        if setup_s not in self._setups:
            self._setups[setup_s] = Delay(self.env, setup_s)
        setup = self._setups[setup_s]
        transfer = medium.start_after(setup, phase // 2, client, bits)
        if transfer is None:
            transfer = delayed = AfterSetUp(self.env, partial(start, client, bits))
            setup.hold(delayed.begin)
        return transfer

    def seconds_to_carry(self, plan: Plan, phase: int, members: IntArray, bits: FloatArray | float) -> FloatArray:
        """Return after how many seconds of set-up and transfer own links have carried some bits; inf for more."""
        whole_s, due = plan.spent_s[phase, members], plan.bits_of(phase, members)
        wanted = np.broadcast_to(bits, members.shape)
        start_s = plan.begun_s[phase, members] + plan.queue_s[phase, members]
        return np.where(
            wanted >= due,
            np.inf,
            first_at_least(lambda at_s: self.carried(plan, phase, members, start_s, at_s), wanted, whole_s),
        )
