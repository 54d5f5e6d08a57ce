"""Dispatch of a cohort: every client's waits planned as arrays, and its process started."""

from collections.abc import Callable

import numpy as np
from simpy import Environment

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.errors import ScenarioError
from fedsim.history.outcomes import COMPUTE, DOWNLINK, PHASES, UPLINK
from fedsim.learning import Release
from fedsim.network.contracts import SharedMedium
from fedsim.rounds.clients.assignment import Assignment
from fedsim.rounds.clients.context import ClientContext
from fedsim.rounds.clients.interruptions import BatteryEmpty, Interruptions
from fedsim.rounds.clients.link_outages import LinkOutages
from fedsim.rounds.clients.participation import Participations
from fedsim.rounds.clients.phases import DeferredUplinks, PhaseHooks, TransferStarter, runs_empty, shorten

OnEnd = Callable[[int, bool], None]
"""Called with a client's position, and whether it has delivered, at the end of its participation."""


class Dispatcher:
    """Sends cohorts over the links of one run.

    Parameters
    ----------
    env : Environment
    context : ClientContext
    """

    def __init__(self, env: Environment, context: ClientContext) -> None:
        self.env, self.context = env, context
        self._transfers = TransferStarter.of(context.links, env, context.workload.down_bits)
        self._hazards = context.dropout.phase_hazards()

    @property
    def medium(self) -> SharedMedium | None:
        """The shared medium on the clock of the run; None if all links are dedicated."""
        return self._transfers.medium

    def send(
        self,
        assignment: Assignment,
        work: FloatArray,
        releases: dict[int, Release] | None = None,
        on_end: OnEnd | None = None,
    ) -> Participations:
        """Plan every client's waits as arrays, start its process, and return the participations.

        Parameters
        ----------
        assignment : Assignment
        work : share of its work that each client does, shape (n,); falls if a client shortens its work
        releases : filled with the privacy release of each upload that starts, by position; None for no release
        on_end : called at the end of each participation; None for nothing
        """
        context, client, draw = self.context, assignment.client, assignment.draw
        planned_s = known_s = self._plan(assignment, work)
        outages = None
        if context.links_up is not None:
            outages = LinkOutages(self.env, context.links_up, client, assignment.availability_s)
            known_s = outages.known_s(planned_s)
        samples, task_s = assignment.samples * work, known_s.sum(axis=0)
        leaves_after_s = context.availability.leaves_after_s(
            client, assignment.availability_s, assignment.availability_draw, task_s
        )
        still_available = self._asked_at_end(assignment, task_s, leaves_after_s)
        leaves_after_s = np.minimum(leaves_after_s, self._breaks_after_s(assignment, planned_s, outages))
        endurance: list[float] | None = None
        if self._hazards is not None and self._transfers.downlink_shared:
            endurance = context.dropout.endurance(client, draw, context.streams).tolist()
        else:
            vanishes_s = context.dropout.time_to_dropout_s(client, draw, context.streams, planned_s)
            leaves_after_s = np.minimum(vanishes_s, leaves_after_s)
        demand, empties = None, {}
        if context.batteries is not None:
            demand = context.batteries.begin(client, self.env.now, assignment.bits, samples, planned_s[COMPUTE])
            empties = runs_empty(demand)
        interruptions = self._interruptions(endurance, empties, outages)
        deferred = None
        if self._transfers.downlink_shared and not self._transfers.uplink_shared:
            deferred = self._deferred_uplinks(assignment, planned_s[COMPUTE])
        hooks = PhaseHooks(
            context=context,
            transfers=self._transfers,
            assignment=assignment,
            work=work,
            releases=releases,
            planned_s=planned_s,
            interruptions=interruptions,
            demand=demand,
            deferred=deferred,
            outages=outages,
        )
        participations = Participations(
            self.env,
            known_s,
            leaves_after_s,
            hooks.by_phase(),
            assignment.bits,
            interruptions=interruptions,
            still_available=still_available,
            demand=demand,
            on_end=on_end,
        )
        # Work that is shortened later changes planned_s alone if known_s is a copy.
        participations.planned_compute_s = planned_s[COMPUTE]
        return participations

    def finalize(self, participations: Participations, members: IntArray | None = None) -> None:
        """Let batteries pay for participations that have ended, after which their clients are idle.

        Parameters
        ----------
        participations : of a cohort of n clients
        members : positions of the participations, shape (m,); None for the whole cohort
        """
        batteries, demand = self.context.batteries, participations.demand
        if batteries is not None and demand is not None:
            chosen = np.arange(demand.client.size) if members is None else members
            client, ended_s = demand.client[chosen], participations.ended_s[chosen]
            spent_j = demand.spent_j(chosen, participations.done(chosen), participations.emptied[chosen])
            batteries.end(client, demand.charge_j[chosen] - spent_j, ended_s)
            participations.energy_j[chosen] = spent_j
            participations.left_j[chosen] = batteries.charge_j(client, ended_s)

    def _plan(self, assignment: Assignment, work: FloatArray) -> FloatArray:
        """Return the durations of each client's phases, shape (3, n); inf where unknown."""
        links, transfers, client = self.context.links, self._transfers, assignment.client
        start_s, unknown_s = np.full(client.size, self.env.now), np.full(client.size, np.inf)
        downlink_s = unknown_s
        if not transfers.downlink_shared:
            downlink_s = links.downlink_s(client, assignment.draw, start_s, assignment.bits[0])
            if assignment.may_shorten:
                shorten(self.context, assignment, work, np.arange(client.size), start_s + downlink_s)
        compute_s = assignment.compute_s * work
        # The start of an upload is unknown in advance after a shared downlink.
        uplink_s = unknown_s
        if transfers.medium is None:
            uplink_s = links.uplink_s(client, assignment.draw, start_s + downlink_s + compute_s, assignment.bits[1])
        planned_s = np.stack([downlink_s, compute_s, uplink_s])
        self._check_plan(assignment, planned_s)
        return planned_s

    def _interruptions(
        self, endurance: list[float] | None, empties: dict[int, BatteryEmpty], outages: LinkOutages | None
    ) -> Interruptions | None:
        """Return what ends phases early; None for nothing."""
        if endurance is None and not empties and outages is None:
            return None
        unplanned = (DOWNLINK, UPLINK) if self._transfers.downlink_shared else (UPLINK,)
        return Interruptions(self._hazards or (0.0, 0.0, 0.0), endurance, empties, outages, unplanned)

    def _breaks_after_s(self, assignment: Assignment, planned_s: FloatArray, outages: LinkOutages | None) -> FloatArray:
        """Return the seconds from now until devices crash, or links fail in planned downlinks; `inf` for never."""
        after_s = np.full(assignment.client.size, np.inf)
        if self.context.devices_up is not None:
            runs, left_s = self.context.devices_up.state(assignment.client, assignment.availability_s)
            after_s = np.where(runs, np.maximum(assignment.availability_s + left_s - self.env.now, 0.0), 0.0)
        if outages is not None and not self._transfers.downlink_shared:
            after_s = np.minimum(after_s, outages.fails_within_s(planned_s[DOWNLINK]))
        return after_s

    def _asked_at_end(
        self, assignment: Assignment, task_s: FloatArray, leaves_after_s: FloatArray
    ) -> Callable[[int], bool] | None:
        """Return what tells at the end of a task whether its client is still available; None if it is known now.

        An availability that evaluates end points alone states no leaving for a task of unknown duration.
        """
        unknown = np.isinf(task_s) & np.isinf(leaves_after_s)
        if not self.context.may_leave or not unknown.any():
            return None
        availability, env, start_s = self.context.availability, self.env, self.env.now
        since_s, draw = assignment.availability_s, assignment.availability_draw

        def still_available(i: int) -> bool:
            if not unknown[i]:
                return True
            task_s, only = np.array([env.now - start_s]), assignment.client[i : i + 1]
            return bool(availability.leaves_after_s(only, since_s, draw, task_s)[0] >= task_s[0])

        return still_available

    def _deferred_uplinks(self, assignment: Assignment, compute_s: FloatArray) -> DeferredUplinks:
        """Return the dedicated uplinks of a cohort whose downlink is shared."""

        def duration_of(member: IntArray, starts_s: FloatArray) -> FloatArray:
            client = assignment.client[member]
            uplink_s = self.context.links.uplink_s(client, assignment.draw, starts_s, assignment.bits[1])
            self._check_times(assignment, client, uplink_s[None], np.isinf(uplink_s[None]), UPLINK)
            return uplink_s

        return DeferredUplinks(self.env, compute_s.tolist(), duration_of)

    def _check_plan(self, assignment: Assignment, planned_s: FloatArray) -> None:
        never = np.isinf(planned_s)
        if self._transfers.unreachable is not None:
            never[[DOWNLINK, UPLINK]] = self._transfers.unreachable[:, assignment.client]
        self._check_times(assignment, assignment.client, planned_s, never)

    def _check_times(
        self, assignment: Assignment, client: IntArray, times_s: FloatArray, never: BoolArray, first: int = DOWNLINK
    ) -> None:
        """Refuse negative durations, and a wait without limit for a phase that never ends.

        Parameters
        ----------
        assignment : Assignment
        client : ids, shape (m,)
        times_s : durations, one row for each phase from ``first`` on, shape (r, m)
        never : whether a phase never ends, shape (r, m)
        first : phase of the first row
        """
        wrong = ~(times_s >= 0) | (assignment.waits_for_all & never)
        if wrong.any():
            row, i = (int(index[0]) for index in np.nonzero(wrong))
            waits = assignment.waits_for_all and never[row, i]
            why = "the policy waits for every client; choose one with a deadline" if waits else "times are at least 0"
            raise ScenarioError(
                f"round {assignment.number}: the {PHASES[first + row]} of client {client[i]} would take "
                f"{times_s[row, i]} s; {why}"
            )
