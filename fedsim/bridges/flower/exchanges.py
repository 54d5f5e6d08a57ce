"""Messages that have been sent over a simulated grid, until the ServerApp has taken their replies."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Final, cast

from flwr.app import Message

from fedsim.bridges.flower.client_apps import ClientApps, Made
from fedsim.bridges.flower.foresight import Expected, Foresight
from fedsim.bridges.flower.messages import LATE, LOST, Instruction, identified, message_bits, missing_reply

_NOTHING: Final = Expected(0.0, 0.0)


class Stage(Enum):
    WAITING = "it has not left the server"
    ON_THE_WAY = "its node has it, or will have it"
    ARRIVED = "its reply has arrived"
    EXPIRED = "its reply did not arrive in time"
    NODE_LOST = "its node was not there, or has been lost"


@dataclass
class Exchange:
    instruction: Instruction
    client: int
    pushed_s: float
    expected: Expected = _NOTHING
    made: Made | None = None
    stage: Stage = Stage.WAITING
    arrived_s: float = math.nan
    known_lost_s: float = math.inf

    @property
    def expires_s(self) -> float:
        """Simulated second until which the message and its reply are valid."""
        return self.pushed_s + float(self.instruction.metadata.ttl)

    @property
    def known_s(self) -> float:
        """Simulated second from which on the server knows that no reply comes."""
        return min(self.known_lost_s, self.expires_s)

    def is_answered(self, now_s: float) -> bool:
        """Return whether the server finds a reply, or an error in its place."""
        return self.stage not in (Stage.WAITING, Stage.ON_THE_WAY) or self.known_s <= now_s

    def arrive(self, time_s: float) -> None:
        self.arrived_s = time_s
        self.stage = Stage.ARRIVED if time_s <= self.expires_s else Stage.EXPIRED


class Replies:
    def __init__(self, apps: ClientApps, foresight: Foresight) -> None:
        self._apps, self._foresight = apps, foresight
        self._arrived: dict[int, list[Exchange]] = {}
        self.in_vain = self.other_than_expected = 0

    def foresee(self, exchange: Exchange) -> None:
        """Find out work and size of the reply to a message that leaves; its ClientApp runs if it is not known."""
        self._run_arrived(exchange.client)
        message = exchange.instruction.message()
        expected = self._foresight.expect(message, self._apps.context(exchange.client))
        if expected is None:
            exchange.made = self._apps.run(exchange.instruction)
            expected = self._found(exchange.made)
        exchange.expected = expected

    def arrive(self, exchange: Exchange, time_s: float) -> None:
        """Take note of the arrival of a reply, which is made when it is taken, or when its node has another message."""
        exchange.arrive(time_s)
        self._arrived.setdefault(exchange.client, []).append(exchange)

    def lose(self, exchange: Exchange, known_s: float) -> None:
        """Forget the reply of a node that is lost, if it was made; the server knows that from an instant on."""
        exchange.known_lost_s = known_s
        if exchange.made is not None:
            exchange.made = None
            self.in_vain += 1

    def reply(self, exchange: Exchange, now_s: float) -> Message | None:
        if exchange.stage is Stage.ARRIVED:
            return self._of_app(exchange)
        if not exchange.is_answered(now_s):
            return None
        if exchange.stage is Stage.NODE_LOST or exchange.known_lost_s <= now_s:
            return missing_reply(exchange.instruction, LOST, "the node is not available", now_s)
        return missing_reply(exchange.instruction, LATE, "the reply has not arrived in time", now_s)

    def _run_arrived(self, client: int) -> None:
        """Run the ClientApp of a node for its replies that have arrived, each with the state that the last one left."""
        for exchange in self._arrived.pop(client, []):
            if exchange.made is None:
                exchange.made = self._apps.run(exchange.instruction)
                self.other_than_expected += self._found(exchange.made) != exchange.expected
            self._apps.keep(exchange.instruction, exchange.made)

    def _of_app(self, exchange: Exchange) -> Message:
        self._run_arrived(exchange.client)
        made, exchange.made = cast(Made, exchange.made), None
        of = made.reply.metadata
        of.created_at = exchange.arrived_s
        of.ttl = exchange.expires_s - exchange.arrived_s
        return identified(made.reply)

    def _found(self, made: Made) -> Expected:
        if made.reply.has_error():
            return Expected(0.0, float(message_bits(made.reply)))
        return self._foresight.found(made.message, made.reply)
