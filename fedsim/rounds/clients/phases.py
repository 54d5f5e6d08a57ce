"""What happens when a member of a cohort enters a phase: flows start, work may be shortened, uploads charge privacy."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray
from simpy import Environment

from fedsim.arrays import FloatArray
from fedsim.devices import NEVER_EMPTY, EnergyDemand
from fedsim.history.outcomes import COMPUTE, DOWNLINK, UPLINK
from fedsim.learning import Release
from fedsim.network import Links
from fedsim.network.contracts import SharedMedium, Transfer
from fedsim.rounds.clients.assignment import Assignment
from fedsim.rounds.clients.context import ClientContext
from fedsim.rounds.clients.interruptions import BatteryEmpty, Interruptions
from fedsim.rounds.clients.link_outages import DeferredTransfer, LinkOutages
from fedsim.rounds.clients.participation import Begin

PlannedTransfers = Callable[[int, float], Transfer]


@dataclass(frozen=True)
class TransferStarter:
    """The shared medium of one run, or what stands for it where none is shared.

    Attributes
    ----------
    air : what is shared, on the clock of the run; None if nothing is
    downlink, uplink : start a client's transfer of so many bits; None where links are dedicated
    never : array of shape (2, K), the clients whose downlink or uplink carries nothing; None if nothing is shared
    """

    env: Environment
    air: SharedMedium | None = None
    downlink: PlannedTransfers | None = None
    uplink: PlannedTransfers | None = None
    never: NDArray[np.bool_] | None = None

    @property
    def now_s(self) -> float:
        """The present instant of its clock."""
        return float(self.env.now)

    @classmethod
    def of(cls, links: Links, env: Environment, bits: float) -> Self:
        """Open the links of a run in which messages have so many bits."""
        if not any(links.shared):
            return cls(env)
        air = links.open(env)
        return cls(
            env,
            air,
            air.downlink if links.shared.down else None,
            air.uplink if links.shared.up else None,
            np.isinf([links.expected_downlink_s(bits), links.expected_uplink_s(bits)]),
        )


LengthsOf = Callable[[NDArray[np.int64], NDArray[np.float64]], NDArray[np.float64]]
"""Returns how long the uplinks of these members take that begin at these instants."""


class DeferredUplinks:
    """The uplinks of one cohort, worked out as arrays: when one is needed, all whose beginning is known by then.

    It is known as soon as a member's downlink is over, or the network says when it will be: work follows, of a length
    that was planned. So a cohort that hears a multicast is worked out in one go, when the first has done its work.

    Parameters
    ----------
    env : Environment
    compute_s : how long the work of each member takes
    lengths_of : works out uplinks
    """

    def __init__(self, env: Environment, compute_s: Sequence[float], lengths_of: LengthsOf) -> None:
        self._env, self._compute_s, self._lengths_of = env, compute_s, lengths_of
        self._begins_s: dict[int, float] = {}
        self._length_s: dict[int, float] = {}
        self._announced: dict[int, Transfer] = {}

    def follow(self, i: int, flow: Transfer) -> Transfer:
        """Keep an eye on a member's downlink if it tells when it will be over; return it."""
        if flow.announces_arrival:
            self._announced[i] = flow
        return flow

    def heard(self, i: int, compute_s: float | None = None) -> float:
        """Take down that a member's downlink is over, and return how long its work takes: as planned, or as given."""
        self._announced.pop(i, None)
        work_s = self._compute_s[i] if compute_s is None else compute_s
        if i not in self._length_s:
            self._begins_s[i] = self._env.now + work_s
        return work_s

    def length_s(self, i: int) -> float:
        """Return how long the uplink of a member takes whose work is done."""
        if i not in self._length_s:
            self._work_out()
        return self._length_s.pop(i)

    def _work_out(self) -> None:
        for i, flow in list(self._announced.items()):
            if (arrives_s := flow.arrives_s()) < math.inf:
                self._begins_s[i] = arrives_s + self._compute_s[i]
                del self._announced[i]
        members = np.fromiter(self._begins_s, dtype=np.int64, count=len(self._begins_s))
        begins_s = np.fromiter(self._begins_s.values(), dtype=np.float64, count=members.size)
        self._length_s.update(zip(members.tolist(), self._lengths_of(members, begins_s).tolist(), strict=True))
        self._begins_s.clear()


@dataclass(frozen=True)
class PhaseHooks:
    """The beginnings of one cohort's phases.

    Attributes
    ----------
    planned_s : array of shape (3, n), lengths of the phases; that of the work falls where it is shortened
    limits, draw : what ends phases before their time, and what batteries pay; None for nothing
    to_come : dedicated uplinks whose beginning is not known in advance; None if there are none
    outages : of the members' links; None for none
    """

    context: ClientContext
    medium: TransferStarter
    errand: Assignment
    planned_s: FloatArray
    limits: Interruptions | None
    draw: EnergyDemand | None
    to_come: DeferredUplinks | None
    outages: LinkOutages | None = None

    def by_phase(self) -> dict[int, Begin]:
        """Return what is called when a member enters a phase; phases where nothing happens are left out."""
        begin: dict[int, Begin] = {}
        if self.medium.downlink is not None:
            begin[DOWNLINK] = self.download
            if self.errand.may_shorten or self.to_come is not None:
                begin[COMPUTE] = self.work
        if self.medium.air is not None or self._charges or self.outages is not None:
            begin[UPLINK] = self.upload
        return begin

    @property
    def _charges(self) -> bool:
        return self.context.accountant is not None and self.errand.releases is not None

    def download(self, i: int) -> Transfer:
        """Start a member's shared downlink."""
        flow = self._start(self.medium.downlink, i, DOWNLINK, self.errand.bits[0])
        # Of work that may yet be shortened nobody knows in advance when it ends.
        return flow if self.to_come is None or self.errand.may_shorten else self.to_come.follow(i, flow)

    def work(self, i: int) -> float:
        """Return how long the work of a member takes that has just heard a shared downlink."""
        if self.errand.may_shorten:
            self._shorten(i)
        compute_s = float(self.planned_s[COMPUTE, i])
        return compute_s if self.to_come is None else self.to_come.heard(i, compute_s)

    def upload(self, i: int) -> Transfer | float:
        """Start a member's uplink, or return how long it takes; one whose link is down begins when it is back."""
        wait_s = 0.0 if self.outages is None else self.outages.hold_s(i)
        if wait_s:
            return DeferredTransfer(
                self.medium.env, wait_s, partial(self._upload_late, i), self.errand.bits[1] * self._paid(i, UPLINK)
            )
        self._charge(i)
        if self.medium.uplink is not None:
            return self._start(self.medium.uplink, i, UPLINK, self.errand.bits[1])
        return float(self.planned_s[UPLINK, i]) if self.to_come is None else self.to_come.length_s(i)

    def _upload_late(self, i: int) -> Transfer | float:
        """Start a member's uplink that has waited for its link, or return how long it takes from now."""
        self._charge(i)
        if self.medium.uplink is not None:
            return self._start(self.medium.uplink, i, UPLINK, self.errand.bits[1])
        only, now_s = self.errand.client[i : i + 1], np.array([self.medium.now_s])
        length_s = self.context.links.uplink_s(only, self.errand.turn, now_s, self.errand.bits[1])
        return float(length_s[0]) * self._paid(i, UPLINK)

    def _charge(self, i: int) -> None:
        """Charge a member's budget."""
        ledger, releases = self.context.accountant, self.errand.releases
        if ledger is not None and releases is not None:
            releases[i] = Release(*ledger.charge(int(self.errand.client[i])))

    def _paid(self, i: int, phase: int) -> float:
        """Return the share of a phase that a member's battery pays for."""
        return 1.0 if self.limits is None else self.limits.paid(i, phase)

    def _start(self, opener: PlannedTransfers | None, i: int, phase: int, bits: float) -> Transfer:
        if opener is None:
            raise RuntimeError("a flow was to start in a direction that is not shared")
        return opener(int(self.errand.client[i]), bits * self._paid(i, phase))

    def _shorten(self, i: int) -> None:
        """Let a member do as much of its work as leaves time for its upload."""
        before = float(self.errand.share[i])
        shorten(self.context, self.errand, np.array([i]), np.array([self.medium.now_s]))
        part = float(self.errand.share[i]) / before
        self.planned_s[COMPUTE, i] *= part
        if part < 1.0 and self.draw is not None:
            self.draw.cost_j[COMPUTE, i] *= part
            self.draw.samples[i] *= part
            if self.limits is not None:
                self.limits.empties_in(i, runs_empty(self.draw).get(i))


def shorten(context: ClientContext, errand: Assignment, members: NDArray[np.int64], begins_s: FloatArray) -> None:
    """Let members that begin their work at some instants do so many steps of it as leave time for an average upload."""
    if errand.mean_uplink_s is None:
        return
    all_s, share = errand.compute_s[members], errand.share[members]
    left_s = errand.ends_s - begins_s - errand.mean_uplink_s[members]
    late = (all_s > 0) & (all_s * share > left_s)
    if late.any():
        fits = np.divide(left_s, all_s, out=share.copy(), where=late)
        wished = np.clip(fits, errand.least_share * share, share)
        shorter = np.minimum(share, context.workload.learner.whole_steps(errand.client[members], wished, up=False))
        errand.share[members] = np.where(late, shorter, share)


def runs_empty(draw: EnergyDemand) -> dict[int, BatteryEmpty]:
    """Return where the batteries run empty that do not last."""
    phase, share = draw.runs_empty()
    member = np.flatnonzero(phase < NEVER_EMPTY)
    return dict(zip(member.tolist(), zip(phase[member].tolist(), share[member].tolist(), strict=True), strict=True))
