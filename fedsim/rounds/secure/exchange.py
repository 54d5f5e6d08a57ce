"""The steps of secure aggregation on the clock of one server, around the participations of its cohorts."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from simpy import Event

from fedsim.arrays import IntArray
from fedsim.history.outcomes import SecureStep
from fedsim.per_client import Values, at, values_of
from fedsim.rounds.effects.contract import BesidePhases, Effect
from fedsim.rounds.effects.server_port import AskingServer
from fedsim.rounds.plan import Plan
from fedsim.rounds.secure.protocols import SECURE_AGGREGATION, SecureAggregation
from fedsim.selectors import Cohort
from fedsim.streams import Streams

SECURE_DRAWS: Final = 2**52
"""Added to the round, once for each step, it makes the draw of the step, whose random times are its own."""


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


class SecureExchange(BesidePhases):
    """The steps of one server's rounds: each is a message down, work, and a message up, as in a participation.

    Steps take the time, the medium and the energy of their messages; clients may be lost in each.
    """

    def __init__(self, parts: SecureParts) -> None:
        self._parts, self._protocol, self._mask_s = parts, parts.protocol, parts.mask_s
        self._least = self._shared = 0

    def at_edge(self, member: IntArray) -> Effect:
        return SecureExchange(self._parts)

    def before_dispatch(self, server: AskingServer, cohort: Cohort) -> Generator[Event, Any, Cohort]:
        """Exchange keys and shares; return the clients that have all shares."""
        left = np.arange(cohort.client.size)
        self._least = self._protocol.least_clients(left.size)
        for step in (SecureStep.ADVERTISE_KEYS, SecureStep.SHARE_KEYS, SecureStep.RECEIVE_SHARES):
            if not left.size:
                break
            bits, masks = self._sizes(step, left.size)
            answered = yield from self._step(server, step, cohort.client[left], bits, masks)
            if step is not SecureStep.RECEIVE_SHARES:
                self._shared = answered.size
            left = left[answered] if answered.size >= self._least else left[:0]
        return cohort.part(left)

    def before_aggregation(
        self, server: AskingServer, plan: Plan, members: IntArray
    ) -> Generator[Event, Any, IntArray]:
        """Collect shares from the clients that have delivered; return them if enough have sent theirs, or none."""
        if not 0 < self._least <= members.size:
            return members[:0]
        protocol, lost = self._protocol, self._shared - members.size
        bits = 0.0, protocol.reveal_bits(self._shared)
        answered = yield from self._step(server, SecureStep.UNMASK, plan.client[members], bits, 0)
        if answered.size < self._least:
            return members[:0]
        # Masks are taken away from all that has arrived, whether its client has responded or not.
        work_s = protocol.server_mask_s * protocol.server_masks(members.size, lost)
        if work_s > 0:
            yield server.env.timeout(work_s)
        return members

    def _sizes(self, step: SecureStep, clients: int) -> tuple[tuple[float, float], int]:
        """Return the bits of the message down and of the message up of a step, and how many masks a client expands."""
        protocol = self._protocol
        if step is SecureStep.ADVERTISE_KEYS:
            return (0.0, protocol.keys_up_bits()), 0
        if step is SecureStep.SHARE_KEYS:
            return (protocol.keys_down_bits(clients), protocol.shares_up_bits(clients)), 0
        return (protocol.shares_down_bits(clients), 0.0), protocol.masks(clients)

    def _step(
        self, server: AskingServer, step: SecureStep, client: IntArray, bits: tuple[float, float], masks: int
    ) -> Generator[Event, Any, IntArray]:
        """Exchange one message with each client, and return the positions of those that have responded."""
        number, rows = server.number, server.rows
        compute_s = np.full(client.size, masks * at(self._mask_s, client))
        plan = server.message(client, SECURE_DRAWS * (1 + step) + number, bits, compute_s=compute_s)
        plan.why_all = "secure aggregation waits for every answer; choose a wait_s"

        def record(asked: Any) -> None:
            rows.add_message("secure_steps", number, asked, step=int(step))

        def in_vain(unanswered: int) -> str:
            return (
                f"rounds.secure_aggregation: a step of round {number} waits for ever: {unanswered} clients can never "
                "answer, since their links carry nothing; allowed: a wait_s for answers, or faster links"
            )

        return (yield from server.ask(plan, record, self._protocol.wait_s, in_vain))
