"""The steps of secure aggregation on the clock of one server, around the participations of its cohorts."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self

import numpy as np
from simpy import Environment, Event, Interrupt

from fedsim.arrays import IntArray
from fedsim.clock import LastOfInstant, first_of
from fedsim.history.outcomes import SecureStep
from fedsim.per_client import Values, at, values_of
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.clients.cohort import CohortRun
from fedsim.rounds.clients.participations import Participations
from fedsim.rounds.clients.records import ParticipationRecords
from fedsim.rounds.plan import Plan
from fedsim.rounds.secure.protocols import SECURE_AGGREGATION, SecureAggregation
from fedsim.selectors import Cohort
from fedsim.streams import Streams

SECURE_DRAWS: Final = 2**52
"""Added to the round, once for each step, it makes the draw of the step, whose random times are its own."""

Kept = Generator[Event, Any, Cohort]
"""Steps on the clock; the value is the cohort that is left."""
Revealed = Generator[Event, Any, bool]
"""Steps on the clock; the value is whether the server learns the sum."""


class StepLog(Protocol):
    def __call__(self, number: int, step: SecureStep, records: ParticipationRecords) -> None: ...


class Masking(Protocol):
    """What happens before a cohort is sent, and before its updates are added up."""

    unanswered: int

    def prepare(self, number: int, cohort: Cohort, availability_draw: int) -> Kept:
        """Return the clients of a cohort that are sent the model; none if too few are left."""
        ...

    def reveal(self, run: CohortRun) -> Revealed:
        """Return whether the server can add up what a cohort has delivered by now."""
        ...


class InClear(Masking):
    """Updates in clear: no steps, and every sum is known."""

    unanswered = 0

    def prepare(self, number: int, cohort: Cohort, availability_draw: int) -> Kept:
        return cohort
        yield

    def reveal(self, run: CohortRun) -> Revealed:
        return True
        yield


@dataclass(frozen=True)
class SecureParts:
    """What the steps of a run depend on."""

    protocol: SecureAggregation
    mask_s: Values
    most: int

    @classmethod
    def of(cls, protocol: SecureAggregation | None, clients: int, most: int, streams: Streams) -> Self | None:
        """Return the parts of a run; None for updates in clear."""
        if protocol is None:
            return None
        mask_s = values_of(protocol, "mask_s", clients, streams, "rounds.secure_aggregation")
        return cls(SECURE_AGGREGATION.checked(protocol), mask_s, min(most, clients))

    def masked_bits(self, update_bits: float) -> float:
        """Return the size of a masked update, given its size in clear."""
        return float(self.protocol.masked_bits(update_bits, self.most))

    def masking(self, env: Environment, clients: Clients, log: StepLog) -> Masking:
        return SecureExchange(env, clients, log, self)


class SecureExchange(Masking):
    """The steps of one server's rounds: each is a message down, work, and a message up, as in a participation.

    Steps take the time, the medium and the energy of their messages; clients may be lost in each. The server waits for
    the protocol's time, or until each client has responded or is lost.
    """

    def __init__(self, env: Environment, clients: Clients, log: StepLog, parts: SecureParts) -> None:
        self.env, self._clients, self._log = env, clients, log
        self._protocol, self._mask_s = parts.protocol, parts.mask_s
        self._least = self._shared = self._availability_draw = self.unanswered = 0

    def prepare(self, number: int, cohort: Cohort, availability_draw: int) -> Kept:
        """Exchange keys and shares; return the clients that have all shares."""
        protocol, left = self._protocol, np.arange(cohort.client.size)
        self._least, self._availability_draw = protocol.least_clients(left.size), availability_draw
        for step in (SecureStep.ADVERTISE_KEYS, SecureStep.SHARE_KEYS, SecureStep.RECEIVE_SHARES):
            if not left.size:
                break
            bits, masks = self._sizes(step, left.size)
            answered = yield from self._step(number, step, cohort.client[left], bits, masks)
            if step is not SecureStep.RECEIVE_SHARES:
                self._shared = answered.size
            left = left[answered] if answered.size >= self._least else left[:0]
        return cohort.part(left)

    def reveal(self, run: CohortRun) -> Revealed:
        """Collect shares from the clients that have delivered; return whether enough have sent theirs."""
        delivered = np.flatnonzero(run.participations.arrived)
        if not 0 < self._least <= delivered.size:
            return False
        protocol, lost = self._protocol, self._shared - delivered.size
        bits = 0.0, protocol.reveal_bits(self._shared)
        answered = yield from self._step(run.number, SecureStep.UNMASK, run.cohort.client[delivered], bits, 0)
        if answered.size < self._least:
            return False
        # Masks are taken away from all that has arrived, whether its client has responded or not.
        work_s = self._server_mask_s * protocol.server_masks(delivered.size, lost)
        if work_s > 0:
            yield self.env.timeout(work_s)
        return True

    def _sizes(self, step: SecureStep, clients: int) -> tuple[tuple[float, float], int]:
        """Return the bits of the message down and of the message up of a step, and how many masks a client expands."""
        protocol = self._protocol
        if step is SecureStep.ADVERTISE_KEYS:
            return (0.0, protocol.keys_up_bits()), 0
        if step is SecureStep.SHARE_KEYS:
            return (protocol.keys_down_bits(clients), protocol.shares_up_bits(clients)), 0
        return (protocol.shares_down_bits(clients), 0.0), protocol.masks(clients)

    @property
    def _server_mask_s(self) -> float:
        return self._protocol.server_mask_s

    def _step(
        self, number: int, step: SecureStep, client: IntArray, bits: tuple[float, float], masks: int
    ) -> Generator[Event, Any, IntArray]:
        """Exchange one message with each client, and return the positions of those that have responded."""
        over, self.unanswered = self.env.event(), client.size

        def ended(*_: object) -> None:
            self.unanswered -= 1
            if not self.unanswered:
                over.succeed()

        plan = Plan(
            client,
            number,
            SECURE_DRAWS * (1 + step) + number,
            looked_s=self.env.now,
            candidacy_draw=self._availability_draw,
            bits=bits,
            samples=np.zeros(client.size),
            compute_s=np.full(client.size, masks * at(self._mask_s, client)),
        )
        plan.update, plan.waits_for_all = False, self._protocol.wait_s is None
        plan.why_all = "secure aggregation waits for every answer; choose a wait_s"
        asked = Participations(self._clients, plan, ended)
        try:
            if self._protocol.wait_s is None:
                yield over
            else:
                yield from first_of(self.env, over, LastOfInstant(self.env, self._protocol.wait_s))
        except Interrupt:
            yield from self._close(number, step, asked)
            raise
        yield from self._close(number, step, asked)
        return np.flatnonzero(asked.arrived)

    def _close(self, number: int, step: SecureStep, asked: Participations) -> Generator[Event, Any, None]:
        """Cancel clients that have not responded, and record what the step has cost."""
        if asked.cancel():
            yield self.env.timeout(0)
        self.unanswered = 0
        asked.settle()
        self._log(number, step, asked.records())
