"""What happens when a client enters a phase: transfers start, work may be shortened, uploads charge privacy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import cast

import numpy as np
from simpy import Environment

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import EnergyDemand
from fedsim.history.outcomes import COMPUTE, DOWNLINK, UPLINK
from fedsim.network.medium.delayed import Delay, DelayedTransfer
from fedsim.network.transfers import SharedMedium, Transfer
from fedsim.per_client import of_one
from fedsim.rounds.clients.assignment import Assignment
from fedsim.rounds.clients.connections import Connections
from fedsim.rounds.clients.context import ClientContext
from fedsim.rounds.clients.draining import Drain
from fedsim.rounds.clients.interruptions import Carried, Interruptions
from fedsim.rounds.clients.link_outages import DeferredTransfer, LinkOutages, PhaseHook, PhaseStart


class DeferredUplinks:
    """Dedicated uplinks after a shared downlink, computed as arrays when one of them is needed.

    The start of an uplink is known once the client's downlink is over, or once the network announces when it will be:
    the work that follows has a planned duration. The uplinks of a cohort that receives a multicast are therefore
    computed in one call, when the first client has done its work. In all methods ``i`` is a client's position in the
    cohort.
    """

    def __init__(
        self,
        env: Environment,
        compute_s: Sequence[float],
        duration_of: Callable[[IntArray, FloatArray], FloatArray],
    ) -> None:
        self._env, self._compute_s, self._duration_of = env, compute_s, duration_of
        self._starts_s: dict[int, float] = {}
        self._durations_s: dict[int, float] = {}
        self._announced: dict[int, Transfer] = {}

    def watch(self, i: int, downlink: Transfer) -> None:
        """Use the arrival that the downlink of client i announces, if it announces one."""
        if downlink.announces_arrival:
            self._announced[i] = downlink

    def downlink_ended(self, i: int, compute_s: float) -> None:
        """Derive the start of the uplink of client i, whose downlink is over now and whose work begins."""
        self._announced.pop(i, None)
        if i not in self._durations_s:
            self._starts_s[i] = self._env.now + compute_s

    def duration_s(self, i: int) -> float:
        """Return the seconds of the uplink of client i, whose work is done."""
        if i not in self._durations_s:
            self._compute()
        return self._durations_s.pop(i)

    def _compute(self) -> None:
        for i, downlink in list(self._announced.items()):
            if (arrives_s := downlink.arrives_s()) < inf:
                self._starts_s[i] = arrives_s + self._compute_s[i]
                del self._announced[i]
        members = np.fromiter(self._starts_s, dtype=np.int64, count=len(self._starts_s))
        starts_s = np.fromiter(self._starts_s.values(), dtype=np.float64, count=members.size)
        self._durations_s.update(zip(members.tolist(), self._duration_of(members, starts_s).tolist(), strict=True))
        self._starts_s.clear()


@dataclass(frozen=True)
class PhaseHooks:
    """The hooks at the starts of one cohort's phases."""

    env: Environment
    context: ClientContext
    medium: SharedMedium | None
    assignment: Assignment
    work: FloatArray
    charge: Callable[[int], None] | None
    planned_s: FloatArray
    interruptions: Interruptions | None
    demand: EnergyDemand | None
    drain: Drain | None
    carried: Carried
    deferred: DeferredUplinks | None
    outages: LinkOutages | None
    setup: Delay | None

    def by_phase(self) -> dict[int, PhaseHook]:
        hooks: dict[int, PhaseHook] = {UPLINK: self.start_uplink}
        shared = self.context.links.shared
        if shared.down:
            hooks[DOWNLINK] = self.start_downlink
            if self.assignment.mean_uplink_s is not None or self.deferred is not None:
                hooks[COMPUTE] = self.start_work
        if self.medium is not None and self.interruptions is None:
            # The usual case: whole messages, of which each client starts its own.
            if shared.down and self.deferred is None:
                hooks[DOWNLINK] = self._whole(DOWNLINK, self.medium.downlink)
            if shared.up and self.charge is None and (self.setup is None or self.assignment.mean_uplink_s is None):
                hooks[UPLINK] = self._whole(UPLINK, self.medium.uplink)
        return hooks

    def start_downlink(self, i: int) -> PhaseStart:
        downlink = self._transfer(DOWNLINK, i)
        # The end of work that may be shortened is unknown in advance.
        if self.deferred is not None and self.assignment.mean_uplink_s is None:
            self.deferred.watch(i, downlink)
        return downlink, inf

    def start_work(self, i: int) -> PhaseStart:
        """Return the seconds of the work of client i, whose shared downlink is over now."""
        if self.assignment.mean_uplink_s is not None:
            self._shorten(i)
        compute_s = float(self.planned_s[COMPUTE, i])
        if self.deferred is not None:
            self.deferred.downlink_ended(i, compute_s)
        return None, compute_s

    def start_uplink(self, i: int) -> PhaseStart:
        """Start the uplink of client i, or return its duration; an uplink waits for a link that is down."""
        wait_s = 0.0 if self.outages is None else self.outages.wait_s(i)
        if wait_s:
            start, carried = partial(self._start_late_uplink, i, wait_s), partial(self._late_bits, i)
            return DeferredTransfer(self.env, wait_s, start, partial(self._paid_bits, i), carried), inf
        if self.charge is not None:
            self.charge(i)
        if self.context.links.shared.up:
            return self._transfer(UPLINK, i), inf
        return None, float(self.planned_s[UPLINK, i]) if self.deferred is None else self.deferred.duration_s(i)

    def _start_late_uplink(self, i: int, wait_s: float) -> PhaseStart:
        """Start the uplink of client i, which has waited for its link, or return its duration from now."""
        if self.charge is not None:
            self.charge(i)
        if self.context.links.shared.up:
            return self._transfer(UPLINK, i, wait_s), inf
        only, now_s = self.assignment.client[i : i + 1], np.array([float(self.env.now)])
        silent_s = self.planned_s[COMPUTE, i : i + 1] + wait_s
        bits, links = of_one(self.assignment.bits[1], i), self.assignment.links
        duration_s = self.context.uplink_s(only, self.assignment.draw, now_s, bits, silent_s, links)
        if self.drain is None or self.interruptions is None:
            return None, float(duration_s[0])
        empty = self.drain.begins(i, UPLINK, float(self.env.now), float(duration_s[0]))
        self.interruptions.set_empty(i, empty)
        return None, float(duration_s[0]) * (1.0 if empty is None else empty.of_time)

    def _paid_bits(self, i: int) -> float:
        return of_one(self.assignment.bits[1], i) * self._paid_share(i, UPLINK)

    def _late_bits(self, i: int, start_s: float, elapsed_s: float) -> float:
        """Return the bits that a dedicated uplink of client i has carried."""
        return float(self.carried(UPLINK, np.array([i]), np.array([start_s]), np.array([elapsed_s]))[0])

    def _paid_share(self, i: int, phase: int) -> float:
        return 1.0 if self.interruptions is None else self.interruptions.paid_share(i, phase)

    def _transfer(self, phase: int, i: int, waited_s: float = 0.0) -> Transfer:
        """Start the part of a shared transfer of client i that its battery pays for, with its connection set up."""
        medium = cast(SharedMedium, self.medium)
        start = medium.downlink if phase == DOWNLINK else medium.uplink
        bits = of_one(self.assignment.bits[phase // 2], i) * self._paid_share(i, phase)
        client = int(self.assignment.client[i])
        if self.setup is None or not self._sets_up(phase, i, waited_s):
            return start(client, bits)
        return self._after_setup(self.setup, phase, client, bits)

    def _after_setup(self, setup: Delay, phase: int, client: int, bits: float) -> Transfer:
        medium, way = cast(SharedMedium, self.medium), phase // 2
        transfer = medium.start_after(setup, way, client, bits)
        if transfer is None:
            start = medium.uplink if way else medium.downlink
            transfer = delayed = DelayedTransfer(self.env, partial(start, client, bits))
            setup.hold(delayed.begin)
        return transfer

    def _whole(self, phase: int, start: Callable[[int, float], Transfer]) -> PhaseHook:
        """Return a hook that starts a shared transfer of each client."""
        client = self.assignment.client.tolist()
        bits = np.broadcast_to(self.assignment.bits[phase // 2], len(client)).tolist()
        if (setup := self.setup) is None:
            return lambda i: (start(client[i], bits[i]), inf)
        after_setup, connections = self._after_setup, cast(Connections, self.context.connections)
        if phase == DOWNLINK:  # all start now
            idle = connections.before_downlink_s(self.assignment.client, float(self.env.now)) > 0
        else:
            idle = connections.idle_before_uplink(self.planned_s[COMPUTE])
        sets_up = idle.tolist()

        def begin(i: int) -> PhaseStart:
            if sets_up[i]:
                return after_setup(setup, phase, client[i], bits[i]), inf
            return start(client[i], bits[i]), inf

        return begin

    def _sets_up(self, phase: int, i: int, waited_s: float = 0.0) -> bool:
        """Return whether client i sets up a connection before its message in a phase, which starts now."""
        connections = cast(Connections, self.context.connections)
        if phase == UPLINK:
            return bool(connections.idle_before_uplink(self.planned_s[COMPUTE, i : i + 1] + waited_s)[0])
        setup_s = connections.before_downlink_s(self.assignment.client[i : i + 1], float(self.env.now))
        return bool(setup_s[0] > 0)

    def _shorten(self, i: int) -> None:
        """Shorten the work of client i to what leaves time for its upload."""
        before = float(self.work[i])
        shorten(self.context, self.assignment, self.work, np.array([i]), np.array([float(self.env.now)]))
        kept = float(self.work[i]) / before
        self.planned_s[COMPUTE, i] *= kept
        if kept < 1.0 and self.demand is not None:
            self.demand.cost_j[COMPUTE, i] *= kept
            self.demand.samples[i] *= kept
            if self.interruptions is not None and self.drain is not None:
                begun_s = float(self.env.now) - float(self.planned_s[DOWNLINK, i])
                self.interruptions.set_empty(i, self.drain.planned(self.planned_s, begun_s).get(i))


def shorten(
    context: ClientContext, assignment: Assignment, work: FloatArray, members: IntArray, starts_s: FloatArray
) -> None:
    """Shorten the work of clients to the number of steps that leaves time for an upload of mean duration."""
    if assignment.mean_uplink_s is None:
        return
    whole_s, share = assignment.compute_s[members], work[members]
    left_s = assignment.deadline_s - starts_s - assignment.mean_uplink_s[members]
    late = (whole_s > 0) & (whole_s * share > left_s)
    if late.any():
        fits = np.divide(left_s, whole_s, out=share.copy(), where=late)
        wished = np.clip(fits, assignment.least_share * share, share)
        steps = context.workload.learner.whole_steps(assignment.client[members], wished, up=False)
        work[members] = np.where(late, np.minimum(share, steps), share)
