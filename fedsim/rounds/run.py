"""What the participations of a run stand on: clock, random streams, links, medium and compute times."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Self

import numpy as np
from simpy import Environment

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import Availability, ComputeTimes
from fedsim.errors import PartError
from fedsim.history.outcomes import COMPUTE, DOWNLINK, UPLINK
from fedsim.inputs.bounds import LATEST_S
from fedsim.network import Links
from fedsim.network.medium.delayed import AfterSetUp, Delay
from fedsim.network.transfers import SharedMedium, Transfer
from fedsim.per_client import at, by_value, is_one
from fedsim.rounds.plan import Plan
from fedsim.rounds.workload import Workload
from fedsim.run_setup import RunSetup

_YEAR_S: Final = 365 * 86_400.0


class Run(RunSetup):
    """The parts of one run with K clients: the argument ``run`` of ``effects(run)``, and of an effect's ``build(run)``.

    Attributes
    ----------
    env : clock
    links, compute, availability : links, compute times, and when clients are online
    workload : sizes of messages, and samples of the work
    effects : what changes participations beside these, in order (`fedsim.rounds.effects.contract.Effects`)
    shared : whether downlink, work and uplink take place on a medium that clients share
    medium, media : that medium, None where clients share nothing; the same as a tuple
    """

    def __init__(
        self,
        env: Environment,
        setup: RunSetup,
        links: Links,
        compute: ComputeTimes,
        availability: Availability,
        workload: Workload,
        effects: Any = (),
    ) -> None:
        super().__init__(setup.clients, setup.streams, setup.positions_m, setup.flops_per_sample)
        self.env, self.links, self.compute = env, links, compute
        self.availability, self.workload, self.effects = availability, workload, effects
        self.shared = links.shared.down, False, links.shared.up
        self.media: tuple[SharedMedium, ...] = (links.open(env),) if any(self.shared) else ()
        self.medium = self.media[0] if self.media else None
        self._setups: dict[float, Delay] = {}

    def __deepcopy__(self, memo: object) -> Self:
        """Return the run itself: a copy of a view refers to the same run."""
        return self

    @property
    def expected_s(self) -> FloatArray:
        """Mean seconds of the phases of each client with all of its work, shape (3, K); inf where links carry nothing.

        On a shared medium they are those of a client that has it to itself.
        """
        down_s = self.links.expected_downlink_s(self.workload.down_bits)
        up_s = self.links.expected_uplink_s(self.workload.up_bits)
        return np.stack([down_s, self.compute.expected_s(self.workload.samples), up_s])

    def expected_on_air_s(self, bits: tuple[float, float]) -> FloatArray:
        """Return the mean seconds on the air of messages down and up of every client, shape (2, K)."""
        return np.stack(
            [self.links.expected_on_air_s(size, up=up) for up, size in zip((False, True), bits, strict=True)]
        )

    @property
    def features(self) -> FloatArray:
        """Features that clients declare, shape (K, 4): the mean seconds of the phases, at most a year, and samples."""
        seconds = np.minimum(self.expected_s, _YEAR_S)
        return np.stack([*seconds, self.workload.learner.samples.astype(np.float64)], axis=1)

    def shows(self) -> dict[str, Callable[[IntArray, float], FloatArray]]:
        """Return the columns that clients declare when they are asked, by name: of their radio, and of effects."""
        links, one = self.links, np.zeros(1, dtype=np.int64)
        columns: dict[str, Callable[[IntArray, float], FloatArray]] = {}
        if links.uplink_gain(one, 0.0) is not None:
            columns["fading_gain"] = lambda client, time_s: _stated("uplink_gain", links.uplink_gain(client, time_s))
        if links.uplink_power_dbm(one) is not None:
            columns["full_power_dbm"] = lambda client, _: _stated("uplink_power_dbm", links.uplink_power_dbm(client))
        for effect in self.effects:
            columns |= effect.shows()
        return columns

    def links_of(self, plan: Plan, phase: int) -> Links:
        """Return the links of a cohort in a phase: of its own in uplinks where a selector has given it such."""
        return self.links if phase == DOWNLINK or plan.links is None else plan.links

    def seconds(self, plan: Plan, phase: int, members: IntArray | slice, start_s: FloatArray) -> FloatArray:
        """Return how long members work, or their own links take for their messages, shape (m,)."""
        if phase == COMPUTE:
            compute_s = plan.compute_s[members]
            return compute_s if plan.works_whole else compute_s * plan.work[members]
        links = self.links_of(plan, phase)
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
        links = self.links_of(plan, phase)
        client, bits, up = plan.client[members], at(plan.bits[phase // 2], members), phase == UPLINK
        setup_s = plan.setup_s[phase][members]
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
        links = self.links_of(plan, phase)
        client, bits, up = plan.client[members], at(plan.bits[phase // 2], members), phase == UPLINK
        air_s: FloatArray = np.minimum(elapsed_s, plan.setup_s[phase][members])
        sending = np.flatnonzero((elapsed_s > air_s) & np.isfinite(elapsed_s))
        begin_s, left_s, sizes = start_s + air_s, elapsed_s - air_s, np.broadcast_to(bits, client.shape)

        def of(some: IntArray | slice, size: float) -> FloatArray:
            k = sending[some]
            return links.on_air_s(client[k], plan.draw, begin_s[k], left_s[k], size, up=up)

        if sending.size:
            air_s[sending] += by_value(sizes[sending], of)
        return air_s

    def transfer(self, phase: int, client: int, bits: float, setup_s: float = 0.0) -> Transfer:
        """Start the transfer of a client over the shared medium, or the set-up before it."""
        medium: Any = self.medium
        start: Callable[[int, float], Transfer] = medium.downlink if phase == DOWNLINK else medium.uplink
        if setup_s <= 0:
            return start(client, bits)
        if setup_s not in self._setups:
            self._setups[setup_s] = Delay(self.env, setup_s)
        setup = self._setups[setup_s]
        transfer: Transfer | None = medium.start_after(setup, phase // 2, client, bits)
        if transfer is None:
            transfer = delayed = AfterSetUp(self.env, partial(start, client, bits))
            setup.hold(delayed.begin)
        return transfer

    def seconds_to_carry(self, plan: Plan, phase: int, members: IntArray, bits: FloatArray | float) -> FloatArray:
        """Return after how many seconds of set-up and transfer own links have carried some bits; inf for more."""
        whole_s, due = plan.spent_s[phase][members], plan.bits_of(phase, members)
        wanted = np.broadcast_to(bits, members.shape)
        start_s = plan.begun_s[phase][members] + plan.queue_s[phase][members]
        return np.where(
            wanted >= due,
            np.inf,
            first_at_least(lambda at_s: self.carried(plan, phase, members, start_s, at_s), wanted, whole_s),
        )


def first_at_least(grows: Callable[[FloatArray], FloatArray], least: FloatArray, longest_s: FloatArray) -> FloatArray:
    """Return the first instants in [0, longest_s] at which a function that never falls reaches values, shape (m,)."""
    low_s, high_s = np.zeros(longest_s.size), np.minimum(longest_s, LATEST_S)
    # To the last digit: the longest time may be that of a band in which a message takes years.
    while np.any((low_s < (middle_s := 0.5 * (low_s + high_s))) & (middle_s < high_s)):
        enough = grows(middle_s) >= least
        high_s, low_s = np.where(enough, middle_s, high_s), np.where(enough, low_s, middle_s)
    return np.where(high_s < LATEST_S, high_s, longest_s)


def _stated(name: str, values: FloatArray | None) -> FloatArray:
    if values is None:
        raise PartError(f"network: {name} returned None after an array", "allowed: one of the two for a whole run")
    return values
