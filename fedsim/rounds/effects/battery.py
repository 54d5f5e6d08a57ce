"""Batteries that pay for bits, for work and for time on the air, and end a participation when they are empty."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray, all_of
from fedsim.devices import Batteries, EnergyDemand
from fedsim.devices.tracking import AvailabilityTracker, OnOffTracker
from fedsim.history.outcomes import COMPUTE, DOWNLINK, NOT_CUT, PHASES, UPLINK
from fedsim.inputs.bounds import LATEST_S
from fedsim.per_client import Values, at
from fedsim.rounds.effects.contract import NEVER, Effect, Limit, Members, Never, Shown
from fedsim.rounds.plan import Plan
from fedsim.rounds.run import Run, first_at_least

_SLACK_ULPS: Final = 8
_AMPLE: Final = 1.0 - 1e-9
_FASTER: Final = 4.0
"""How much faster than on average a shared medium may carry bits before a battery's end is seen too late."""
_STEP: Final = 1e-4
"""Share of the seconds so far in which a battery that is almost empty is looked at again, at the rate so far."""
_LEAST_STEP: Final = 1e-6
"""Share in which it is looked at again at the soonest, so that a link that stands still is not asked without end."""


class Battery(Effect):
    """Each member pays phase by phase out of the charge with which it begins."""

    def __init__(self, batteries: Batteries) -> None:
        self.batteries = batteries
        self._trackers: list[OnOffTracker] = []

    def begin(self, run: Run) -> None:
        self._run, prices = run, self.batteries.prices
        powers = prices.receive_w, prices.transmit_w, prices.base_w
        if any(np.any(np.greater(power_w, 0)) for power_w in powers):
            for medium in run.media:
                medium.count_air()

    def free_s(self, client: IntArray, time_s: float) -> FloatArray:
        return self.batteries.free_s(client, time_s)

    def tracker(self, client: IntArray) -> AvailabilityTracker:
        self._trackers.append(tracker := OnOffTracker(self.batteries.holds_until_s, client))
        return tracker

    def never(self, time_s: float) -> Never | None:
        batteries = self.batteries
        if not (batteries.charge_j(np.arange(batteries.clients), time_s) < batteries.least_j).all():
            return None
        why = (
            f"all {batteries.clients} batteries are below {np.max(batteries.least_j):.6g} J, the least charge, for good"
        )
        return Never("devices.energy", why, "batteries that are charged enough for one participation")

    def shows(self) -> Mapping[str, Shown]:
        batteries = self.batteries
        return {
            "charge_j": batteries.charge_j,
            "capacity_j": lambda client, _: _each(at(batteries.capacity_j, client), client),
            "charging_w": lambda client, _: _each(at(batteries.idle_gain_w, client), client),
            "participation_j": lambda client, _: self._mean_j[client],
        }

    def participation_j(self, client: IntArray, phases_s: FloatArray, on_air_s: FloatArray) -> FloatArray:
        """Return the joules of whole participations; infinite seconds count only where they cost."""
        prices, workload, (down_s, work_s, up_s) = self.batteries.prices.of(client), self._run.workload, phases_s
        radio_j = prices.receive_j_per_bit * workload.down_bits + prices.transmit_j_per_bit * workload.up_bits
        air_j = _paid_j(prices.receive_w, on_air_s[0]) + _paid_j(prices.transmit_w, on_air_s[1])
        air_j += _paid_j(prices.base_w, down_s + up_s)
        work_j = prices.sample_j * workload.samples[client] + _paid_j(prices.compute_w, work_s)
        return _each(radio_j + air_j + work_j, client)

    @cached_property
    def _mean_j(self) -> FloatArray:
        run = self._run
        phases_s = run.features[:, :3].T
        on_air_s = run.expected_on_air_s((run.workload.down_bits, run.workload.up_bits))
        return self.participation_j(np.arange(run.clients), phases_s, np.minimum(on_air_s, phases_s[::2]))

    def plan(self, plan: Plan) -> None:
        demand = self.batteries.begin(
            plan.client,
            plan.start_s,
            (plan.bits[0], plan.bits[1]),
            plan.samples * plan.work,
            plan.compute_s * plan.work,
            plan.cpu_frequency,
            plan.transmit_power_dbm,
        )
        self._look_again(plan.client)
        plan.notes[EnergyDemand], plan.notes[self] = demand, demand.charge_j.copy()
        plan.columns |= {"energy_j": np.zeros(plan.client.size), "left_j": np.zeros(plan.client.size)}
        plan.columns["emptied"] = np.zeros(plan.client.size, dtype=bool)
        plan.counts_air = demand.counts_air
        # Whether a charge lasts whatever happens, so that nothing needs to be asked.
        lasts = demand.cost_j.sum(axis=0) < _AMPLE * demand.charge_j
        plan.notes[self, "work"] = plan.work.copy()
        plan.notes[self, "lasts"] = lasts = lasts & (not demand.counts_air)
        plan.notes[self, "all_last"] = all_of(lasts)

    def limit(self, plan: Plan, phase: int, members: Members) -> Limit | None:
        """Return for how many seconds, or bits, the charge lasts; for both together in a known duration."""
        if phase == COMPUTE and not all_of(plan.work[members] == plan.notes[self, "work"][members]):
            self._price_work(plan, np.atleast_1d(members))
        if plan.notes[self, "all_last"] or all_of(plan.notes[self, "lasts"][members]):
            return None
        members, demand = np.atleast_1d(members), plan.notes[EnergyDemand]
        left_j = plan.notes[self][members]
        whole_s = plan.spent_s[phase][members]
        slack_j = _SLACK_ULPS * np.spacing(demand.charge_j[members])
        if self._run.shared[phase]:
            return self._limit_shared(plan, demand, phase, members, left_j, slack_j)
        due_j = self._due_j(plan, demand, phase, members)
        short = due_j > left_j + slack_j
        if not short.any():
            return None
        share = np.divide(left_j, due_j, out=np.ones(members.size), where=short)
        active_s = np.full(members.size, NEVER)
        # A share of 0 takes no time, even of a phase of infinite duration.
        with np.errstate(invalid="ignore"):
            active_s[short] = np.where(share[short] > 0, share[short] * whole_s[short], 0.0)
        if phase == COMPUTE:
            return Limit(active_s=active_s)
        bits = np.where(short, share * plan.bits_of(phase, members), NEVER)
        curved = short & (share > 0) & (whole_s > 0)
        # Otherwise bits are carried in proportion to time: none are while a connection is set up.
        if self._run.links.steady and not plan.setup_s[phase][members].any():
            curved &= np.isinf(whole_s)
        if curved.any():
            some = members[curved]
            active_s[curved] = first_at_least(self._cost_by_j(plan, phase, some), left_j[curved], whole_s[curved])
            start_s = plan.begun_s[phase, some] + plan.queue_s[phase, some]
            bits[curved] = self._run.carried(plan, phase, some, start_s, active_s[curved])
        return Limit(active_s=active_s, bits=bits)

    def passed(self, plan: Plan, phase: int, members: Members) -> BoolArray | None:
        """Pay for a whole phase; who cannot, for a phase without length, ends there."""
        if plan.notes[self, "all_last"] or all_of(plan.notes[self, "lasts"][members]):
            return None
        members, demand = np.atleast_1d(members), plan.notes[EnergyDemand]
        left_j = plan.notes[self][members]
        due_j = self._due_j(plan, demand, phase, members)
        plan.notes[self][members] = np.maximum(left_j - due_j, 0.0)
        if self._run.shared[phase]:
            return None
        empty: BoolArray = due_j > left_j + _SLACK_ULPS * np.spacing(demand.charge_j[members])
        return empty

    def settle(self, plan: Plan, members: IntArray) -> None:
        """Pay for what was sent and done; a battery that has ended a participation is empty."""
        demand: EnergyDemand = plan.notes[EnergyDemand]
        client, ended_s, spent_s = plan.client[members], plan.end_s[members], plan.spent_s[:, members]
        emptied = np.zeros(members.size, dtype=bool)
        if plan.cause:
            emptied[:] = [plan.cause.get(i) is self for i in members.tolist()]
        planned_s = (plan.compute_s * plan.work)[members]
        bits = plan.bits_of(0, members), plan.bits_of(2, members)
        done = _shares_done(spent_s, plan.cut_in[members], plan.sent_bits[:, members], planned_s, bits)
        radio_j = np.zeros(spent_s.shape)
        if demand.counts_air:
            for phase in (DOWNLINK, UPLINK):
                if not self._run.shared[phase]:
                    plan.on_air_s[phase // 2][members] = self._on_air_s(plan, phase, members, spent_s[phase])
                radio_j[phase] = demand.radio_j(phase, members, plan.on_air_s[phase // 2][members], spent_s[phase])
        spent_j = demand.spent_j(members, done, emptied, radio_j)
        self.batteries.end(client, demand.charge_j[members] - spent_j, ended_s)
        self._look_again(client)
        plan.columns["energy_j"][members], plan.columns["emptied"][members] = spent_j, emptied
        plan.columns["left_j"][members] = self.batteries.charge_j(client, ended_s)

    def columns(self, plan: Plan, members: IntArray) -> Mapping[str, FloatArray]:
        return {"energy_j": plan.columns["energy_j"][members]}

    def _look_again(self, client: IntArray) -> None:
        for tracker in self._trackers:
            tracker.look_again(client)

    def _price_work(self, plan: Plan, members: IntArray) -> None:
        """Price the work of members that have shortened it since they began."""
        demand, before = plan.notes[EnergyDemand], plan.notes[self, "work"]
        share = plan.work[members] / before[members]
        demand.cost_j[COMPUTE][members] *= share
        demand.samples[members] *= share
        before[members] = plan.work[members]

    def _limit_shared(
        self, plan: Plan, demand: EnergyDemand, phase: int, members: IntArray, left_j: FloatArray, slack_j: FloatArray
    ) -> Limit | None:
        """Return for how many bits charges last, and in which seconds bits and radio together cannot cost them."""
        cost_j, size = demand.cost_j[phase][members], plan.bits_of(phase, members)
        short = cost_j > left_j + slack_j
        bits = np.where(short, size * np.divide(left_j, cost_j, out=np.ones(members.size), where=short), NEVER)
        on_air_w, base_w = (_of_phase(power, phase, members) for power in (demand.power_w, demand.base_w))
        if not (on_air_w.any() or base_w.any()):
            return Limit(bits=bits) if short.any() else None
        per_bit_j = np.divide(cost_j, size, out=np.zeros(members.size), where=size > 0)
        fastest_bps = np.zeros(members.size)
        for k in np.flatnonzero(per_bit_j > 0):
            alone_s = self._run.links.expected_on_air_s(float(size[k]), up=phase == UPLINK)[plan.client[members[k]]]
            fastest_bps[k] = _FASTER * size[k] / alone_s if 0 < alone_s < NEVER else 0.0
        place = {i: k for k, i in enumerate(members.tolist())}

        def left_s(i: int, spent_s: float, on_air_s: float, sent_bits: float) -> float:
            k = place[i]
            if on_air_w[k] + base_w[k] == 0:
                return NEVER
            seen_bps, radio_w = sent_bits / on_air_s if on_air_s > 0 else 0.0, on_air_w[k] + base_w[k]
            most_w = radio_w + per_bit_j[k] * max(fastest_bps[k], _FASTER * seen_bps)
            rest_j = left_j[k] + slack_j[k] - on_air_w[k] * on_air_s - base_w[k] * spent_s - per_bit_j[k] * sent_bits
            if rest_j <= slack_j[k] / 2:
                return 0.0
            near_s = min(_STEP * spent_s, rest_j / (radio_w + per_bit_j[k] * seen_bps))
            return float(max(rest_j / most_w, near_s, _LEAST_STEP * spent_s))

        return Limit(bits=bits, left_s=left_s)

    def _on_air_s(self, plan: Plan, phase: int, members: IntArray, spent_s: FloatArray) -> FloatArray:
        """Return the seconds on the air of phases over own links that have lasted some seconds."""
        start_s = plan.begun_s[phase][members] + plan.queue_s[phase][members]
        air_s = np.zeros(members.size)
        some = np.flatnonzero(spent_s > 0)
        air_s[some] = self._run.on_air_s(plan, phase, members[some], start_s[some], spent_s[some])
        return air_s

    def _due_j(self, plan: Plan, demand: EnergyDemand, phase: int, members: IntArray) -> FloatArray:
        """Return the energy of whole phases; of a message that never ends, up to the end of the clock."""
        due_j: FloatArray = demand.cost_j[phase][members]
        if phase == COMPUTE:
            return due_j
        spent_s = plan.spent_s[phase][members]
        if self._run.shared[phase]:
            return due_j + demand.radio_j(phase, members, plan.on_air_s[phase // 2][members], spent_s)
        begins = np.isfinite(plan.begun_s[phase][members])
        endless = begins & np.isinf(spent_s)
        if demand.counts_air:
            whole_s = np.where(begins & ~endless, spent_s, 0.0)
            due_j = due_j + demand.radio_j(phase, members, self._on_air_s(plan, phase, members, whole_s), whole_s)
        if endless.any():
            due_j[endless] = self._cost_by_j(plan, phase, members[endless])(np.full(endless.sum(), LATEST_S))
        return np.where(begins, due_j, 0.0)

    def _cost_by_j(self, plan: Plan, phase: int, members: IntArray) -> Callable[[FloatArray], FloatArray]:
        """Return a function that says what seconds of set-up and transfer over own links, and their bits, cost."""
        demand, bits = plan.notes[EnergyDemand], plan.bits_of(phase, members)
        per_bit_j = np.divide(demand.cost_j[phase][members], bits, out=np.zeros(members.size), where=bits > 0)
        start_s = plan.begun_s[phase][members] + plan.queue_s[phase][members]

        def cost_by_j(at_s: FloatArray) -> FloatArray:
            cost_j: FloatArray = per_bit_j * self._run.carried(plan, phase, members, start_s, at_s)
            if demand.counts_air:
                air_s = self._run.on_air_s(plan, phase, members, start_s, at_s)
                cost_j = cost_j + demand.radio_j(phase, members, air_s, at_s)
            return cost_j

        return cost_by_j


def _shares_done(
    spent_s: FloatArray,
    cut_in: NDArray[np.int8],
    sent_bits: FloatArray,
    planned_compute_s: FloatArray,
    bits: tuple[Values, Values],
) -> FloatArray:
    """Return the share of each phase's bits or work that participations have done, shape (3, m)."""
    done: FloatArray = ((cut_in == NOT_CUT) | (cut_in > np.arange(len(PHASES))[:, None])).astype(np.float64)
    cut = (cut_in == COMPUTE) & (planned_compute_s > 0)
    done[COMPUTE, cut] = spent_s[COMPUTE, cut] / planned_compute_s[cut]
    for phase, sent, whole in zip((DOWNLINK, UPLINK), sent_bits, bits, strict=True):
        if np.all(np.greater(whole, 0)):
            done[phase] = sent / whole
    return done


def _paid_j(power_w: Values, seconds: FloatArray) -> FloatArray:
    """Return power times seconds; no power costs nothing, however long it takes."""
    return np.multiply(power_w, seconds, out=np.zeros(seconds.size), where=np.greater(power_w, 0))


def _each(values: FloatArray | float, client: IntArray) -> FloatArray:
    return np.broadcast_to(np.asarray(values, dtype=np.float64), client.shape)


def _of_phase(power_w: FloatArray | None, phase: int, members: IntArray) -> FloatArray:
    return np.zeros(members.size) if power_w is None else power_w[phase][members]
