"""Messages that have been sent over a simulated grid, until the ServerApp has taken their replies."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Final

from flwr.app import Message

from fedsim.bridges.flower.client_apps import ClientApps, Made
from fedsim.bridges.flower.foresight import Expected, Foresight
from fedsim.bridges.flower.messages import LATE, LOST, Instruction, identified, message_bits, missing_reply

_NOTHING: Final = Expected(0.0, 0.0)


class Stage(Enum):
    WAITING = "it has not left the server"
    ON_THE_WAY = "its node has it, or will have it"
    ARRIVED = "its reply has arrived"
    CANCELLED = "its round has ended without it"
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

    def arrive(self, time_s: float) -> None:
        """Take note of the arrival of the reply, which may have come too late."""
        self.arrived_s = time_s
        self.stage = Stage.ARRIVED if time_s <= self.expires_s else Stage.EXPIRED


class Replies:
    def __init__(self, apps: ClientApps, foresight: Foresight) -> None:
        self._apps, self._foresight = apps, foresight
        self.in_vain = self.other_than_expected = 0

    def foresee(self, exchange: Exchange) -> None:
        """Find out work and size of the reply to a message that leaves; its ClientApp runs if it is not known."""
        message = exchange.instruction.message()
        expected = self._foresight.expect(message, self._apps.context(exchange.client))
        if expected is None:
            exchange.made = self._apps.run(exchange.instruction)
            expected = self._found(exchange.made)
        exchange.expected = expected

    def forget_lost(self, exchange: Exchange) -> None:
        """Forget the reply to a message that will not arrive any more, if it was made."""
        if exchange.made is not None and exchange.stage in (Stage.CANCELLED, Stage.EXPIRED, Stage.NODE_LOST):
            exchange.made = None
            self.in_vain += 1

    def reply(self, exchange: Exchange, now_s: float) -> Message | None:
        if exchange.stage is Stage.ARRIVED:
            return self._of_app(exchange)
        if exchange.stage is Stage.NODE_LOST or exchange.known_lost_s <= now_s:
            return missing_reply(exchange.instruction, LOST, "the node is not available", now_s)
        if exchange.stage in (Stage.CANCELLED, Stage.EXPIRED) or now_s > exchange.expires_s:
            return missing_reply(exchange.instruction, LATE, "the reply has not arrived in time", now_s)
        return None

    def _of_app(self, exchange: Exchange) -> Message:
        made = exchange.made
        if made is None:
            made = self._apps.run(exchange.instruction)
            if self._found(made) != exchange.expected:
                self.other_than_expected += 1
        self._apps.keep(exchange.instruction, made)
        exchange.made = None
        of = made.reply.metadata
        of.created_at = exchange.arrived_s
        of.ttl = exchange.expires_s - exchange.arrived_s
        return identified(made.reply)

    def _found(self, made: Made) -> Expected:
        if made.reply.has_error():
            return Expected(0.0, float(message_bits(made.reply)))
        return self._foresight.found(made.message, made.reply)
