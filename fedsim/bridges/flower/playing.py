"""The messages of a ServerApp as rounds of a testbed."""

import math
from collections.abc import Collection, Iterable
from typing import Literal

import numpy as np

from fedsim.bridges.flower.exchanges import Exchange, Replies, Stage
from fedsim.bridges.flower.timeouts import UntilTimeout
from fedsim.bridges.testbed import RoundResult, Testbed
from fedsim.errors import StepError
from fedsim.history.outcomes import Outcome

Counts = Literal["samples", "flops", "compute_s"]


class RunIsOver(BaseException):
    """Ends a ServerApp whose scenario has ended its run."""


class Playing:
    """A node works on one message at a time; others wait for it, and no message is cancelled."""

    def __init__(self, testbed: Testbed, policy: UntilTimeout, replies: Replies, counts: Counts) -> None:
        self._testbed, self._policy, self._replies, self._counts = testbed, policy, replies, counts
        # Clients that go on after the round in which they were late.
        self._busy: dict[int, Exchange] = {}
        self.kinds: list[tuple[int, str]] = []
        self.just_played = False
        """Whether no time has passed since the last round."""

    def nodes(self) -> list[int]:
        """Return the clients that are available now or work; if all work or are away, wait until one is there."""
        return sorted({*self._free(), *self._busy})

    def play(self, exchanges: Collection[Exchange], timeout_s: float, own: Collection[Exchange]) -> None:
        """Play messages that wait, in rounds with at most one to a client, until some of them are answered.

        A policy that does not wait for all leaves no time for messages to nodes that work on others.
        """
        end_s, ids = self._testbed.now_s + timeout_s, {one.instruction.id for one in own}
        if not self._policy.waits_for_all:
            before = [one.client for one in self._waiting(exchanges) if one.instruction.id not in ids]
            own = [one for one in own if one.client not in {*before, *self._busy}]
        while self._testbed.now_s < end_s and (waiting := self._waiting(own)):
            if wave := self._wave(exchanges):
                self._play_round(wave, end_s)
            else:
                self._pass(min(end_s, *(one.known_s for one in waiting)))

    def play_to_first(self, exchanges: Collection[Exchange], wanted: Collection[Exchange]) -> None:
        """Play messages that wait, and let time pass until one of some messages is answered."""
        while wanted and not any(one.is_answered(self._testbed.now_s) for one in wanted):
            if wave := self._wave(exchanges):
                # A round does not end with the reply to a message of an earlier one.
                alone = not self._busy and len(wave) == len(self._waiting(exchanges))
                self._play_round(wave, math.inf if alone else self._testbed.now_s, to_first=True)
            else:
                self._pass(min(one.known_s for one in wanted))

    def sleep(self, exchanges: Collection[Exchange], seconds: float) -> None:
        """Let time pass in which messages that wait are played, each once its node has no other one."""
        until_s = self._testbed.now_s + seconds
        while self._testbed.now_s < until_s:
            if wave := self._wave(exchanges):
                # A message that waits leaves when its node is free, and not when others are.
                alone = len(wave) == len(self._waiting(exchanges))
                self._play_round(wave, until_s if alone else self._testbed.now_s)
            else:
                self._pass(until_s, to_arrival=bool(self._waiting(exchanges)))

    def _free(self, until_s: float = math.inf) -> list[int]:
        """Return the clients that are available now and have no message; if there is none, wait for one so long."""
        try:
            view = self._testbed.view(within_s=max(0.0, until_s - self._testbed.now_s))
        except StepError:  # of a run that is over
            raise RunIsOver from None
        clients: list[int] = view.client.tolist()
        self._pass(self._testbed.now_s)
        for client in self._busy.keys() & set(clients):
            self._replies.lose(self._busy.pop(client), self._testbed.now_s)
        return clients

    def _waiting(self, exchanges: Iterable[Exchange]) -> list[Exchange]:
        now_s = self._testbed.now_s
        return [one for one in exchanges if one.stage is Stage.WAITING and not one.is_answered(now_s)]

    def _wave(self, exchanges: Iterable[Exchange]) -> list[Exchange]:
        """Return the first message that waits to each client that does not work."""
        waiting = self._waiting(exchanges)
        first = {one.client: one for one in reversed(waiting)}
        return [one for one in waiting if first[one.client] is one and one.client not in self._busy]

    def _pass(self, until_s: float, *, to_arrival: bool = True) -> None:
        """Let time pass up to an instant, or to the first reply of a client that has gone on."""
        self.just_played = False
        try:
            arrivals = self._testbed.advance(max(until_s, self._testbed.now_s), to_arrival=to_arrival)
        except StepError:  # of a run that is over
            raise RunIsOver from None
        for arrival in arrivals:
            self._arrived_late(arrival.client, arrival.time_s)

    def _play_round(self, wave: list[Exchange], end_s: float, *, to_first: bool = False) -> None:
        """Play a round with one message to each of some clients, up to an instant at most, or to its first reply."""
        available, sent = set(self._free(min(end_s, max(one.expires_s for one in wave)))), []
        now_s = self._testbed.now_s
        for one in self._waiting(wave):
            if one.client not in available:
                one.stage = Stage.NODE_LOST
            else:
                one.stage = Stage.ON_THE_WAY
                self._replies.foresee(one)
                sent.append(one)
        if not sent:
            return
        end_s = min(end_s, max(one.expires_s for one in sent))
        self._policy.wait_at_most(max(0.0, end_s - now_s), to_first=to_first)
        work = np.array([one.expected.work for one in sent])
        result = self._testbed.round(
            [one.client for one in sent],
            down_bits=np.array([float(one.instruction.bits) for one in sent]),
            up_bits=np.array([one.expected.bits for one in sent]),
            samples=work if self._counts == "samples" else None,
            flops=work if self._counts == "flops" else None,
            compute_s=work if self._counts == "compute_s" else None,
        )
        self.just_played = True
        self.kinds.append((result.number, "+".join(sorted({one.instruction.kind for one in sent}))))
        self._settle(sent, result)

    def _settle(self, sent: list[Exchange], result: RoundResult) -> None:
        """Take note of how the participations of a round have ended, and of those that have arrived late."""
        for i in np.flatnonzero(result.late.arrived).tolist():
            self._arrived_late(int(result.late.client[i]), float(result.late.end_s[i]))
        columns = result.client.tolist(), result.arrived.tolist(), result.end_s.tolist(), result.outcome.tolist()
        by_client = {one.client: one for one in sent}
        for client, arrived, end_s, outcome in zip(*columns, strict=True):
            one = by_client[client]
            if arrived:
                self._replies.arrive(one, end_s)
            elif outcome == Outcome.DROPPED.label:
                self._replies.lose(one, end_s + self._policy.noticed_after_s)
            else:
                self._busy[client] = one

    def _arrived_late(self, client: int, end_s: float) -> None:
        one = self._busy.pop(client, None)
        if one is not None:
            self._replies.arrive(one, end_s)
