"""The future of a round's candidates, which no real server knows; oracle selectors may ask for it."""

from dataclasses import dataclass

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.history.outcomes import DOWNLINK, PHASES, UPLINK
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.effects.contract import Effect
from fedsim.rounds.plan import Look, Plan
from fedsim.rounds.server.context import ServerContext
from fedsim.selectors import OracleView, RoundView


def with_future(context: ServerContext, clients: Clients, view: RoundView, availability_draw: int) -> OracleView:
    expected_duration_s = context.expected_duration_s[view.client]
    expected_duration_s.flags.writeable = False
    paid_by = next(iter(clients.effects.having("participation_j")), None)
    future = OracleKnowledge(context, clients, view, availability_draw, paid_by)
    return OracleView(
        **vars(view),
        expected_duration_s=expected_duration_s,
        coming_duration_s=future.duration_s,
        coming_uplink_s=future.uplink_s,
        coming_energy_j=None if paid_by is None else future.energy_j,
        stays=future.stays,
    )


@dataclass(frozen=True)
class OracleKnowledge:
    """The future of the candidates of one round, computed when it is asked for."""

    context: ServerContext
    clients: Clients
    view: RoundView
    availability_draw: int
    paid_by: Effect | None = None

    def duration_s(self) -> FloatArray:
        """Return the duration of each candidate's participation that starts now; means on shared media."""
        return np.asarray(self._phases_s().sum(axis=0))

    def uplink_s(self) -> FloatArray:
        """Return the duration of each candidate's upload of that participation; means on shared media."""
        return np.asarray(self._phases_s()[2])

    def energy_j(self) -> FloatArray:
        """Return the joules of this participation; inf over a link that carries nothing if seconds on the air cost."""
        if self.paid_by is None:
            raise ValueError("an oracle of energy needs an effect that pays for it; this run has none")
        phases_s, on_air_s = np.split(self._times_s(), [len(PHASES)])
        return self.paid_by.participation_j(self.view.client, phases_s, on_air_s)

    def _phases_s(self) -> FloatArray:
        return self._times_s()[: len(PHASES)]

    def _times_s(self) -> FloatArray:
        """Return the seconds of downlink, work and uplink, and those on the air down and up, shape (5, n)."""
        client, number = self.view.client, self.view.round
        if self.context.rules.policy.traits.concurrency is None:
            return self._draw_s(client, number)
        # An asynchronous server sends each client with the draw of its own next participation.
        draws, times_s = self.view.participations + 1, np.zeros((len(PHASES) + 2, client.size))
        for draw in np.unique(draws).tolist():
            with_draw = np.flatnonzero(draws == draw)
            times_s[:, with_draw] = self._draw_s(client[with_draw], draw)
        return times_s

    def stays(self, from_s: FloatArray, to_s: FloatArray) -> BoolArray:
        """Return which candidates are available throughout a time, in seconds from now."""
        availability, client, draw = self.context.availability, self.view.client, self.availability_draw
        starts_s = self.view.time_s + np.broadcast_to(from_s, client.shape)
        lasts_s = np.broadcast_to(to_s, client.shape) - np.broadcast_to(from_s, client.shape)
        stays = np.zeros(client.size, dtype=bool)
        for start_s in np.unique(starts_s).tolist():
            alike = np.flatnonzero(starts_s == start_s)
            these, task_s = client[alike], lasts_s[alike]
            available = availability.available(these, start_s, draw)
            stays[alike] = available & (availability.leaves_after_s(these, start_s, draw, task_s) >= task_s)
        return stays

    def _draw_s(self, client: IntArray, draw: int) -> FloatArray:
        context = self.context
        workload = context.clients.workload
        samples = workload.samples[client]
        plan = Plan(
            client,
            self.view.round,
            draw,
            Look(self.view.time_s, self.availability_draw),
            bits=(workload.down_bits, workload.up_bits),
            samples=samples,
            compute_s=context.clients.compute.duration_s(client, draw, samples),
        )
        return np.concatenate([self.clients.phases_s(plan), self._on_air_s(plan)])

    def _on_air_s(self, plan: Plan) -> FloatArray:
        """Return the seconds on the air of phases that are planned, shape (2, n); means on a shared medium."""
        run, sizes, everyone = self.clients.run, [float(np.max(size)) for size in plan.bits], plan.everyone
        on_air_s = run.expected_on_air_s((sizes[0], sizes[1]))[:, plan.client]
        if self.paid_by is not None:
            for phase in (DOWNLINK, UPLINK):
                if not run.shared[phase]:
                    start_s = plan.begun_s[phase] + plan.queue_s[phase]
                    on_air_s[phase // 2] = run.on_air_s(plan, phase, everyone, start_s, plan.spent_s[phase])
        return on_air_s
