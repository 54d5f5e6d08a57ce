"""How a cohort is sent on its way: every member's waits planned as arrays, and its process started."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy import Environment

from fedsim.arrays import FloatArray
from fedsim.errors import ScenarioError
from fedsim.history.outcomes import COMPUTE, DOWNLINK, PHASES, UPLINK
from fedsim.rounds.clients.assignment import Assignment
from fedsim.rounds.clients.context import ClientContext
from fedsim.rounds.clients.interruptions import BatteryEmpty, Interruptions
from fedsim.rounds.clients.link_outages import LinkOutages
from fedsim.rounds.clients.participation import Participations
from fedsim.rounds.clients.phases import DeferredUplinks, PhaseHooks, TransferStarter, runs_empty, shorten

OnEnd = Callable[[int, bool], None]


class Dispatcher:
    """Sends cohorts on their way.

    Parameters
    ----------
    env : Environment
    context : ClientContext

    Attributes
    ----------
    medium : which directions of the links are shared, opened on the clock
    """

    def __init__(self, env: Environment, context: ClientContext) -> None:
        self.env, self.context = env, context
        self.medium = TransferStarter.of(context.links, env, context.workload.down_bits)
        self._hazards = context.dropout.phase_hazards()

    def send(self, errand: Assignment, on_end: OnEnd | None = None) -> Participations:
        """Plan every member's waits as arrays and start its process.

        Parameters
        ----------
        errand : Errand
        on_end : called with a member's position, and whether it has delivered, when it has ended
        """
        context, client, turn = self.context, errand.client, errand.turn
        planned_s = known_s = self._plan(errand)
        outages = None
        if context.links_up is not None:
            outages = LinkOutages(self.env, context.links_up, client, errand.opens_s)
            known_s = outages.known_s(planned_s)
        samples, task_s = errand.samples * errand.share, known_s.sum(axis=0)
        leaves_after_s = context.availability.leaves_after_s(client, errand.opens_s, errand.availability_draw, task_s)
        stays = self._watch_ends(errand, task_s, leaves_after_s)
        leaves_after_s = np.minimum(leaves_after_s, self._breaks_after_s(errand, planned_s, outages))
        endurance: list[float] | None = None
        if self._hazards is not None and self.medium.downlink is not None:
            endurance = context.dropout.endurance(client, turn, context.streams).tolist()
        else:
            vanishes_s = context.dropout.time_to_dropout_s(client, turn, context.streams, planned_s)
            leaves_after_s = np.minimum(vanishes_s, leaves_after_s)
        draw, empties = None, {}
        if context.batteries is not None:
            draw = context.batteries.begin(client, self.env.now, errand.bits, samples, planned_s[COMPUTE])
            empties = runs_empty(draw)
        limits = self._limits(endurance, empties, outages)
        to_come = None
        if self.medium.downlink is not None and self.medium.uplink is None:
            to_come = self._uplinks_to_come(errand, planned_s[COMPUTE])
        beginnings = PhaseHooks(context, self.medium, errand, planned_s, limits, draw, to_come, outages)
        there = Participations(
            self.env,
            known_s,
            leaves_after_s,
            beginnings.by_phase(),
            errand.bits,
            limits=limits,
            stays=stays,
            draw=draw,
            on_end=on_end,
        )
        # Where known_s is a copy, work that is shortened on its way is so in planned_s alone.
        there.planned_compute_s = planned_s[COMPUTE]
        return there

    def settle(self, there: Participations, members: NDArray[np.int64] | None = None) -> None:
        """Let batteries pay for members that have ended, everybody if none are named; their clients are free then."""
        batteries, draw = self.context.batteries, there.draw
        if batteries is not None and draw is not None:
            chosen = np.arange(draw.client.size) if members is None else members
            client, ended_s = draw.client[chosen], there.ended_s[chosen]
            spent_j = draw.spent_j(chosen, there.done(chosen), there.emptied[chosen])
            batteries.end(client, draw.charge_j[chosen] - spent_j, ended_s)
            there.energy_j[chosen], there.left_j[chosen] = spent_j, batteries.charge_j(client, ended_s)

    def _plan(self, errand: Assignment) -> FloatArray:
        """Return how long the phases of each member take, shape (3, n); inf where nobody knows."""
        links, medium, client = self.context.links, self.medium, errand.client
        start_s, unknown_s = np.full(client.size, self.env.now), np.full(client.size, np.inf)
        downlink_s = unknown_s
        if medium.downlink is None:
            downlink_s = links.downlink_s(client, errand.turn, start_s, errand.bits[0])
            if errand.may_shorten:
                shorten(self.context, errand, np.arange(client.size), start_s + downlink_s)
        compute_s = errand.compute_s * errand.share
        # The start of an upload is not known in advance after a shared downlink.
        uplink_s = unknown_s
        if medium.air is None:
            uplink_s = links.uplink_s(client, errand.turn, start_s + downlink_s + compute_s, errand.bits[1])
        planned_s = np.stack([downlink_s, compute_s, uplink_s])
        self._check_plan(errand, planned_s)
        return planned_s

    def _limits(
        self, endurance: list[float] | None, empties: dict[int, BatteryEmpty], outages: LinkOutages | None
    ) -> Interruptions | None:
        """Return what ends phases before their time; None for nothing."""
        if endurance is None and not empties and outages is None:
            return None
        unplanned = (UPLINK,) if self.medium.downlink is None else (DOWNLINK, UPLINK)
        return Interruptions(self._hazards or (0.0, 0.0, 0.0), endurance, empties, outages, unplanned)

    def _breaks_after_s(self, errand: Assignment, planned_s: FloatArray, outages: LinkOutages | None) -> FloatArray:
        """Return how long from now on devices crash, or links fail in planned downlinks; `inf` for never."""
        after_s = np.full(errand.client.size, np.inf)
        if self.context.devices_up is not None:
            runs, left_s = self.context.devices_up.state(errand.client, errand.opens_s)
            after_s = np.where(runs, np.maximum(errand.opens_s + left_s - self.env.now, 0.0), 0.0)
        if outages is not None and self.medium.downlink is None:
            after_s = np.minimum(after_s, outages.within_s(planned_s[DOWNLINK]))
        return after_s

    def _watch_ends(
        self, errand: Assignment, task_s: FloatArray, leaves_after_s: FloatArray
    ) -> Callable[[int], bool] | None:
        """Return how to ask at the end of a task whether its client is still there; None if that is known now.

        Asked about a task of unknown length, a presence that looks at end points only knows of no leaving.
        """
        unknown = np.isinf(task_s) & np.isinf(leaves_after_s)
        if not self.context.may_leave or not unknown.any():
            return None
        presence, env, start_s = self.context.availability, self.env, self.env.now

        def stays(i: int) -> bool:
            if not unknown[i]:
                return True
            task_s, only = np.array([env.now - start_s]), errand.client[i : i + 1]
            return bool(presence.leaves_after_s(only, errand.opens_s, errand.availability_draw, task_s)[0] >= task_s[0])

        return stays

    def _uplinks_to_come(self, errand: Assignment, compute_s: FloatArray) -> DeferredUplinks:
        """Return the dedicated uplinks of a cohort whose downlink is shared."""

        def lengths_of(member: NDArray[np.int64], begins_s: FloatArray) -> FloatArray:
            chosen = errand.client[member]
            uplink_s = self.context.links.uplink_s(chosen, errand.turn, begins_s, errand.bits[1])
            self._check_times(errand, chosen, uplink_s[None], np.isinf(uplink_s[None]), UPLINK)
            return uplink_s

        return DeferredUplinks(self.env, compute_s.tolist(), lengths_of)

    def _check_plan(self, errand: Assignment, planned_s: FloatArray) -> None:
        never = np.isinf(planned_s)
        if self.medium.never is not None:
            never[[DOWNLINK, UPLINK]] = self.medium.never[:, errand.client]
        self._check_times(errand, errand.client, planned_s, never)

    def _check_times(
        self,
        errand: Assignment,
        client: NDArray[np.int64],
        times_s: FloatArray,
        never: NDArray[Any],
        first: int = DOWNLINK,
    ) -> None:
        """Refuse times that are none, and a wait for somebody who will never be done; rows are phases from a first."""
        wrong = ~(times_s >= 0) | (errand.endless & never)
        if wrong.any():
            row, i = (int(index[0]) for index in np.nonzero(wrong))
            waits = errand.endless and never[row, i]
            why = "the policy waits for everyone; choose one with a deadline" if waits else "times are at least 0"
            raise ScenarioError(
                f"round {errand.number}: the {PHASES[first + row]} of client {client[i]} would take "
                f"{times_s[row, i]} s; {why}"
            )
