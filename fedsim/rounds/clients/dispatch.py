"""Dispatch of a cohort: every client's waits planned as arrays, and the first of them begun."""

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final

import numpy as np
from simpy import Environment

from fedsim.arrays import BoolArray, FloatArray, IntArray, filled
from fedsim.devices import Prices
from fedsim.errors import ScenarioError
from fedsim.history.outcomes import COMPUTE, DOWNLINK, PHASES, UPLINK
from fedsim.network.contracts import Directions
from fedsim.network.medium.delayed import Delay
from fedsim.network.transfers import SharedMedium
from fedsim.per_client import at
from fedsim.rounds.clients.assignment import Assignment
from fedsim.rounds.clients.context import ClientContext
from fedsim.rounds.clients.draining import Drain
from fedsim.rounds.clients.interruptions import BatteryEmpty, Carried, Interruptions
from fedsim.rounds.clients.link_outages import LinkOutages, PhaseHook
from fedsim.rounds.clients.participation import OnEnd, Participations
from fedsim.rounds.clients.phases import DeferredUplinks, PhaseHooks, shorten
from fedsim.rounds.clients.records import shares_done

_INFINITE: Final = int(np.array(math.inf).view(np.uint64))


class Dispatcher:
    """Sends cohorts over the links of one run."""

    def __init__(self, env: Environment, context: ClientContext) -> None:
        self.env, self.context = env, context
        links, bits = context.links, context.workload.down_bits
        self.medium: SharedMedium | None = None
        if any(links.shared):
            if context.batteries is not None:
                _refuse_both_prices(context.batteries.prices, links.shared)
            self.medium = links.open(env)
            # Whether the downlink and the uplink of each client carry nothing, shape (2, K).
            self._unreachable = np.isinf([links.expected_downlink_s(bits), links.expected_uplink_s(bits)])
        connection = links.connection
        self._setup = None if connection is None else Delay(env, connection.setup_s)
        self._hazards = context.dropout.phase_hazards()

    def send(
        self,
        assignment: Assignment,
        work: FloatArray,
        charge: Callable[[int], None] | None = None,
        on_end: OnEnd | None = None,
    ) -> Participations:
        """Plan every client's waits as arrays, begin the first of them, and return the participations.

        ``work`` is the share of its work that each client does, which falls if a client shortens it. ``charge`` is
        called with a position when an upload starts.
        """
        context, client, draw = self.context, assignment.client, assignment.draw
        shared = context.links.shared
        planned_s = known_s = self._plan(assignment, work)
        outages = None
        if context.links_up is not None:
            outages = LinkOutages(self.env, context.links_up, client, assignment.availability_s)
            known_s = outages.known_s(planned_s)
        leaves_after_s: list[FloatArray] = self._breaks_after_s(assignment, planned_s, outages)
        still_available: Callable[[int], bool] | None = None
        if context.may_leave:
            task_s = known_s.sum(axis=0)
            unavailable_s = context.availability.leaves_after_s(
                client, assignment.availability_s, assignment.availability_draw, task_s
            )
            still_available = self._asked_at_end(assignment, np.isinf(task_s) & np.isinf(unavailable_s))
            leaves_after_s.append(unavailable_s)
        endurance: list[float] | None = None
        if self._hazards is not None and shared.down:
            endurance = context.dropout.endurance(client, draw, context.streams).tolist()
        elif context.dropout.possible:
            leaves_after_s.append(context.dropout.time_to_dropout_s(client, draw, context.streams, planned_s))
        carried = self._carried(assignment, planned_s)
        demand, drain, empties, metered = None, None, {}, False
        if context.batteries is not None:
            samples = assignment.samples * work
            demand = context.batteries.begin(
                client,
                self.env.now,
                assignment.bits,
                samples,
                planned_s[COMPUTE],
                assignment.cpu_frequency,
                assignment.transmit_power_dbm,
            )
            steady = context.steady
            drain = Drain(demand, assignment.bits, None if steady else carried)
            empties = drain.planned(planned_s, self.env.now)
            # Where the start or the duration of a transfer is unknown, so is how long a battery lasts in it.
            unknown = self.medium is not None or outages is not None
            metered = unknown and (demand.power_w is not None or not (steady or shared.up))
        interruptions = None
        if endurance is not None or empties or outages is not None or metered:
            interruptions = self._interruptions(endurance, empties, outages)
        hooks: Mapping[int, PhaseHook] = {}
        if self.medium is not None or outages is not None or charge is not None:
            hooks = PhaseHooks(
                env=self.env,
                context=context,
                medium=self.medium,
                assignment=assignment,
                work=work,
                charge=charge,
                planned_s=planned_s,
                interruptions=interruptions,
                demand=demand,
                drain=drain,
                carried=carried,
                deferred=self._deferred_uplinks(assignment, planned_s) if shared.down and not shared.up else None,
                outages=outages,
                setup=self._setup,
            ).by_phase()
        participations = Participations(
            self.env,
            known_s,
            reduce(np.minimum, leaves_after_s) if leaves_after_s else None,
            hooks,
            assignment.bits,
            planned_s[COMPUTE],
            interruptions,
            still_available,
            demand,
            carried,
            on_end,
            drain=drain if metered else None,
            draw=draw,
            links=assignment.links,
            all_awaited=assignment.waits_for_all and assignment.deadline_s == math.inf,
        )
        if drain is not None:
            drain.spent_s = participations.spent_s
        return participations

    def finalize(self, client: IntArray, participations: Participations, members: IntArray | None = None) -> None:
        """Store the last messages of participations that have ended, and charge batteries."""
        participations.count_bits()  # as long as it is known who had to set up a connection
        connections, batteries, demand = self.context.connections, self.context.batteries, participations.demand
        if connections is None and batteries is None:
            return
        chosen = np.arange(client.size) if members is None else members
        if connections is not None:
            connections.ended(client, participations, chosen)
        if batteries is not None and demand is not None:
            drained, ended_s = demand.client[chosen], participations.ended_s[chosen]
            spent_s, emptied = participations.spent_s[:, chosen], participations.emptied[chosen]
            done = shares_done(
                spent_s,
                participations.cut_in[chosen],
                participations.sent_bits[:, chosen],
                participations.planned_compute_s[chosen],
                (at(participations.bits[0], chosen), at(participations.bits[1], chosen)),
            )
            spent_j = demand.spent_j(chosen, done, emptied, spent_s)
            batteries.end(drained, demand.charge_j[chosen] - spent_j, ended_s)
            participations.energy_j[chosen] = spent_j
            participations.left_j[chosen] = batteries.charge_j(drained, ended_s)

    def _plan(self, assignment: Assignment, work: FloatArray) -> FloatArray:
        """Return the durations of each client's phases, shape (3, n); inf where unknown."""
        links, client = self.context.links, assignment.client
        planned_s = np.empty((len(PHASES), client.size))
        planned_s.fill(math.inf)
        if not links.shared.down:
            start_s = filled(client.size, self.env.now)
            downlink_s = self.context.downlink_s(client, assignment.draw, start_s, assignment.bits[0])
            planned_s[DOWNLINK] = downlink_s
            if assignment.mean_uplink_s is not None:
                shorten(self.context, assignment, work, np.arange(client.size), start_s + downlink_s)
        planned_s[COMPUTE] = compute_s = assignment.compute_s * work
        # The start of an upload is unknown in advance after a shared downlink.
        if self.medium is None:
            uploads_s = start_s + downlink_s + compute_s
            planned_s[UPLINK] = self.context.uplink_s(
                client, assignment.draw, uploads_s, assignment.bits[1], compute_s, assignment.links
            )
            never = None
        else:
            never = np.isinf(planned_s)
            never[[DOWNLINK, UPLINK]] = self._unreachable[:, client]
        self._check_times(assignment, client, planned_s, never)
        return planned_s

    def _carried(self, assignment: Assignment, planned_s: FloatArray) -> Carried:
        """Return a function from transfers of a cohort to the bits that they have carried."""
        client, context = assignment.client, self.context

        def carried(phase: int, member: IntArray, start_s: FloatArray, elapsed_s: FloatArray) -> FloatArray:
            silent_s = planned_s[COMPUTE, member] if phase == UPLINK else None
            bits = at(assignment.bits[phase // 2], member)
            links = assignment.links
            return context.carried_bits(client[member], assignment.draw, start_s, elapsed_s, bits, silent_s, links)

        return carried

    def _interruptions(
        self,
        endurance: list[float] | None,
        empties: dict[int, BatteryEmpty],
        outages: LinkOutages | None,
    ) -> Interruptions:
        unplanned = (DOWNLINK, UPLINK) if self.context.links.shared.down else (UPLINK,)
        return Interruptions(self._hazards or (0.0, 0.0, 0.0), endurance, empties, outages, unplanned)

    def _breaks_after_s(
        self, assignment: Assignment, planned_s: FloatArray, outages: LinkOutages | None
    ) -> list[FloatArray]:
        """Return the seconds from now until devices crash, and links fail in planned downlinks; `inf` for never."""
        after_s = []
        if self.context.devices_up is not None:
            runs, left_s = self.context.devices_up.state(assignment.client, assignment.availability_s)
            crash_s = np.maximum(assignment.availability_s + left_s - self.env.now, 0.0)
            after_s.append(np.where(runs, crash_s, 0.0))
        if outages is not None and not self.context.links.shared.down:
            after_s.append(outages.fails_within_s(planned_s[DOWNLINK]))
        return after_s

    def _asked_at_end(self, assignment: Assignment, unknown: BoolArray) -> Callable[[int], bool] | None:
        """Return what states at the end of a task whether its client is still available; None if it is known now.

        An availability that evaluates end points alone states no leaving for a task of unknown duration.
        """
        if not unknown.any():
            return None
        availability, env, start_s = self.context.availability, self.env, self.env.now
        since_s, draw = assignment.availability_s, assignment.availability_draw

        def still_available(i: int) -> bool:
            if not unknown[i]:
                return True
            task_s, only = np.array([env.now - start_s]), assignment.client[i : i + 1]
            return bool(availability.leaves_after_s(only, since_s, draw, task_s)[0] >= task_s[0])

        return still_available

    def _deferred_uplinks(self, assignment: Assignment, planned_s: FloatArray) -> DeferredUplinks:
        """Return the dedicated uplinks of a cohort whose downlink is shared."""

        def duration_of(member: IntArray, starts_s: FloatArray) -> FloatArray:
            client = assignment.client[member]
            worked_s, bits = planned_s[COMPUTE, member], at(assignment.bits[1], member)
            uplink_s = self.context.uplink_s(client, assignment.draw, starts_s, bits, worked_s, assignment.links)
            self._check_times(assignment, client, uplink_s[None], None, UPLINK)
            return uplink_s

        return DeferredUplinks(self.env, planned_s[COMPUTE].tolist(), duration_of)

    def _check_times(
        self,
        assignment: Assignment,
        client: IntArray,
        times_s: FloatArray,
        never: BoolArray | None,
        first: int = DOWNLINK,
    ) -> None:
        """Refuse negative durations, and a wait without limit for a phase that never ends."""
        if not times_s.size:
            return
        if never is None or not assignment.waits_for_all:
            # Bits ascend from 0 to inf, and those of negative numbers and NaN are above them.
            highest = np.maximum.reduce(times_s.view(np.uint64), axis=None)
            if highest < _INFINITE or (highest == _INFINITE and not assignment.waits_for_all):
                return
        if never is None:
            never = np.isinf(times_s)
        wrong = ~(times_s >= 0) | (assignment.waits_for_all & never)
        if wrong.any():
            row, i = (int(index[0]) for index in np.nonzero(wrong))
            waits = assignment.waits_for_all and never[row, i]
            why = assignment.why_all if waits else "times are at least 0"
            raise ScenarioError(
                f"round {assignment.number}: the {PHASES[first + row]} of client {client[i]} would take "
                f"{times_s[row, i]} s; {why}"
            )


def _refuse_both_prices(prices: Prices, shared: Directions) -> None:
    """Refuse a price of bits and a power in a shared direction: when a battery is empty would be known too late."""
    for name, is_shared, per_bit_j, power_w in (
        ("receive", shared.down, prices.receive_j_per_bit, prices.receive_w),
        ("transmit", shared.up, prices.transmit_j_per_bit, prices.transmit_w),
    ):
        if is_shared and np.any((np.asarray(per_bit_j) > 0) & (np.asarray(power_w) > 0)):
            raise ScenarioError(
                f"devices.energy: {name}_j_per_bit and {name}_w are both above 0, and clients share the direction; "
                "allowed: one of the two, or dedicated links"
            )
