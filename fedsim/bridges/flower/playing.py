"""The messages of a ServerApp as rounds of a testbed."""

import math
from collections.abc import Iterable
from typing import Literal

import numpy as np

from fedsim.bridges.flower.exchanges import Exchange, Replies, Stage
from fedsim.bridges.flower.timeouts import UntilTimeout
from fedsim.bridges.testbed import RoundResult, Testbed
from fedsim.history.outcomes import Outcome

Counts = Literal["samples", "flops", "compute_s"]


class RunIsOver(BaseException):
    """Ends a ServerApp whose scenario has ended its run."""


class Playing:
    def __init__(
        self, testbed: Testbed, policy: UntilTimeout, replies: Replies, counts: Counts, *, cancels: bool
    ) -> None:
        self._testbed, self._policy, self._replies, self._counts = testbed, policy, replies, counts
        self._cancels = cancels
        # Clients that go on after the round in which they were late; each of them has one message.
        self._late: dict[int, Exchange] = {}
        self.kinds: list[tuple[int, str]] = []

    def available(self) -> list[int]:
        """Return the clients that are available now and have no message; if there is none, wait until there is."""
        self._refuse_end()
        clients: list[int] = self._testbed.view().client.tolist()
        return clients

    def play(self, exchanges: Iterable[Exchange], timeout_s: float = math.inf) -> None:
        """Play the messages that wait, in rounds with at most one to a client."""
        everything, end_s = list(exchanges), self._testbed.now_s + timeout_s
        while waiting := [one for one in everything if one.stage is Stage.WAITING]:
            first = {one.client: one for one in reversed(waiting)}
            self._play_round([one for one in waiting if first[one.client] is one], end_s)

    def sleep(self, until_s: float) -> None:
        if until_s > self._testbed.now_s:
            self._refuse_end()
            for arrival in self._testbed.advance(until_s):
                self._arrived_late(arrival.client, arrival.time_s)

    def _refuse_end(self) -> None:
        if self._testbed.over:
            raise RunIsOver

    def _play_round(self, wave: list[Exchange], end_s: float) -> None:
        """Play a round with one message to each of some clients, up to an instant at most."""
        available, sent = set(self.available()), []
        now_s = self._testbed.now_s
        for one in wave:
            if one.client not in available:
                one.stage = Stage.NODE_LOST
            elif min(end_s, one.expires_s) <= now_s:
                one.stage = Stage.EXPIRED
            else:
                one.stage = Stage.ON_THE_WAY
                self._replies.foresee(one)
                sent.append(one)
        if not sent:
            return
        self._policy.wait_at_most(min(end_s, max(one.expires_s for one in sent)) - now_s)
        work = np.array([one.expected.work for one in sent])
        result = self._testbed.round(
            [one.client for one in sent],
            down_bits=np.array([float(one.instruction.bits) for one in sent]),
            up_bits=np.array([one.expected.bits for one in sent]),
            samples=work if self._counts == "samples" else None,
            flops=work if self._counts == "flops" else None,
            compute_s=work if self._counts == "compute_s" else None,
        )
        self.kinds.append((result.number, "+".join(sorted({one.instruction.kind for one in sent}))))
        self._settle(sent, result)

    def _settle(self, sent: list[Exchange], result: RoundResult) -> None:
        """Take note of how the participations of a round have ended, and of those that have arrived late."""
        columns = result.client.tolist(), result.arrived.tolist(), result.end_s.tolist(), result.outcome.tolist()
        by_client = {one.client: one for one in sent}
        for client, arrived, end_s, outcome in zip(*columns, strict=True):
            one = by_client[client]
            if arrived:
                one.arrive(end_s)
            elif outcome == Outcome.DROPPED.label:
                one.known_lost_s = end_s + self._policy.noticed_after_s
                if self._cancels:
                    one.stage = Stage.NODE_LOST if one.known_lost_s <= self._testbed.now_s else Stage.CANCELLED
            elif self._cancels:
                one.stage = Stage.CANCELLED
            else:
                self._late[client] = one
            self._replies.forget_lost(one)
        for i in np.flatnonzero(result.late.arrived).tolist():
            self._arrived_late(int(result.late.client[i]), float(result.late.end_s[i]))

    def _arrived_late(self, client: int, end_s: float) -> None:
        one = self._late.pop(client, None)
        if one is not None:
            one.arrive(end_s)
            self._replies.forget_lost(one)
