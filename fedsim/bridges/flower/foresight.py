"""What is known of a reply before its ClientApp has run: the work of making it, and its size.

The upload of a reply begins when its work is done, so both are needed when the message is sent. What a `Foresight`
expects decides when the ClientApp runs:

* It returns an `Expected`: times follow from that, and the ClientApp runs when its reply is handed to the ServerApp. A
  ClientApp whose reply does not arrive never runs.
* It returns None: the ClientApp runs when its message is sent, and times follow from its own reply. Where that does not
  arrive it was computed in vain, and the state of its client stays as it was before.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from flwr.app import ArrayRecord, Context, Message

from fedsim.bridges.flower.messages import message_bits
from fedsim.errors import ScenarioError

WORK_KEY: Final = "num-examples"
"""Metric by which Flower's strategies know how many examples a reply was made of."""


@dataclass(frozen=True)
class Expected:
    work: float
    bits: float


class Foresight(Protocol):
    """Expects replies in advance, and learns from every reply that was made."""

    def expect(self, message: Message, context: Context) -> Expected | None:
        """Return what is expected of the reply to a message; None if the ClientApp has to run first."""
        ...

    def found(self, message: Message, reply: Message) -> Expected:
        """Return what a reply has turned out to be; called once for each reply, in the order in which they are made."""
        ...


class FromReplies:
    """Expects of a node's reply what its last reply to a message of the same type was."""

    def __init__(self, work: str | Callable[[Message, Message], float] | None = None, *, remember: bool = True) -> None:
        self._work, self._remember = work, remember
        self._last: dict[tuple[int, str], Expected] = {}

    def expect(self, message: Message, context: Context) -> Expected | None:
        """Return what the node's last reply to such a message was; None before the first."""
        return self._last.get(_key(message)) if self._remember else None

    def found(self, message: Message, reply: Message) -> Expected:
        found = Expected(self._work_of(message, reply), float(message_bits(reply)))
        self._last[_key(message)] = found
        return found

    def _work_of(self, message: Message, reply: Message) -> float:
        if callable(self._work):
            return checked_work(self._work(message, reply), message)
        key = WORK_KEY if self._work is None else self._work
        metrics = {name: value for record in reply.content.metric_records.values() for name, value in record.items()}
        if key in metrics:
            return checked_work(metrics[key], message)
        if message.metadata.message_type.split(".")[0] not in ("train", "evaluate"):
            return 0.0
        raise ScenarioError(
            f"work: the reply to a message {message.metadata.message_type!r} has no metric {key!r}, which states "
            f"its work; its metrics: {', '.join(map(repr, metrics)) or 'none'}; allowed: one of them as "
            "FromReplies(work=...), a function of message and reply, or FromInstruction"
        )


class FromInstruction:
    """Work, and if wanted sizes, follow from a message and its node alone: no ClientApp runs without need."""

    def __init__(
        self, work: Callable[[Message, Context], float], reply_bits: Callable[[Message, Context], float] | None = None
    ) -> None:
        self._work, self._reply_bits = work, reply_bits
        self._declared: dict[tuple[int, str], float] = {}
        self._last: dict[str, float] = {}

    def expect(self, message: Message, context: Context) -> Expected:
        self._declared[_key(message)] = work = checked_work(self._work(message, context), message)
        if self._reply_bits is not None:
            return Expected(work, float(self._reply_bits(message, context)))
        kind = message.metadata.message_type
        if kind in self._last:
            return Expected(work, self._last[kind])
        bits = message_bits(message)
        if kind.split(".")[0] != "train":
            records = message.content.values()
            bits -= 8 * sum(record.count_bytes() for record in records if isinstance(record, ArrayRecord))
        return Expected(work, float(bits))

    def found(self, message: Message, reply: Message) -> Expected:
        """Return the work that was declared and the size of the reply, and remember the size."""
        self._last[message.metadata.message_type] = bits = float(message_bits(reply))
        return Expected(self._declared[_key(message)], bits)


def checked_work(work: object, message: Message) -> float:
    """Return an amount of work as a number; refuse what is none."""
    if isinstance(work, int | float) and 0 <= work < math.inf:
        return float(work)
    raise ScenarioError(
        f"work: {work!r} for a message {message.metadata.message_type!r} to node {message.metadata.dst_node_id}; "
        "allowed: a number of at least 0"
    )


def _key(message: Message) -> tuple[int, str]:
    return int(message.metadata.dst_node_id), str(message.metadata.message_type)
