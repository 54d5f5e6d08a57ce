"""Messages of Flower on the way: their sizes, copies of them, and the errors that stand for missing replies."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from typing import Any, Final

from flwr.app import Error, Message, Metadata, RecordDict
from flwr.app.message import make_message
from flwr.common.constant import SUPERLINK_NODE_ID, ErrorCode
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.common.serde_utils import error_to_proto, metadata_to_proto
from flwr.supercore.constant import SYSTEM_MESSAGE_TYPE

SERVER_NODE_ID: Final = int(SUPERLINK_NODE_ID)
LATE: Final = int(ErrorCode.MESSAGE_UNAVAILABLE)
"""What Flower says of a message that has expired before its reply arrived."""
LOST: Final = int(ErrorCode.NODE_UNAVAILABLE)
"""What Flower says of a message whose node no longer reports itself."""
RAISED: Final = int(ErrorCode.CLIENT_APP_RAISED_EXCEPTION)
"""What Flower says of a message whose ClientApp raised an exception."""

_BITS: Final = 8


def message_bits(message: Message) -> int:
    body = error_to_proto(message.error) if message.has_error() else recorddict_to_proto(message.content)
    return _BITS * (int(metadata_to_proto(message.metadata).ByteSize()) + int(body.ByteSize()))


@dataclass(frozen=True)
class Instruction:
    """A message to a node as it was when it was sent: what the ServerApp changes later does not reach the node."""

    metadata: Metadata
    records: Any
    bits: int

    @property
    def id(self) -> str:
        return str(self.metadata.message_id)

    @property
    def node_id(self) -> int:
        return int(self.metadata.dst_node_id)

    @property
    def kind(self) -> str:
        """The type of the message, such as ``"train"`` or ``"query.size"``."""
        return str(self.metadata.message_type)

    def message(self) -> Message:
        return make_message(metadata=copy(self.metadata), content=recorddict_from_proto(self.records))


def instructions_of(messages: Iterable[Message]) -> list[Instruction]:
    """Return messages as they are now; a content that several of them have is serialised once."""
    kept: dict[int, tuple[RecordDict, Any, int]] = {}
    instructions = []
    for message in messages:
        content = message.content
        if id(content) not in kept:
            records = recorddict_to_proto(content)
            kept[id(content)] = content, records, int(records.ByteSize())
        _, records, size = kept[id(content)]
        metadata = copy(message.metadata)
        bits = _BITS * (int(metadata_to_proto(metadata).ByteSize()) + size)
        instructions.append(Instruction(metadata, records, bits))
    return instructions


def missing_reply(instruction: Instruction, code: int, reason: str, now_s: float) -> Message:
    """Return the error that a server receives in place of a reply, as Flower's own servers make it."""
    of = instruction.metadata
    return _error(of.message_id, of.run_id, of.group_id, of.message_type, Error(code=code, reason=reason), now_s)


def unknown_message(message_id: str, run_id: int, now_s: float) -> Message:
    """Return the error that a server receives that asks for the reply to a message that does not exist any more."""
    error = Error(code=LATE, reason="there is no such message, or its reply has been taken")
    return _error(message_id, run_id, "", str(SYSTEM_MESSAGE_TYPE), error, now_s)


def _error(message_id: str, run_id: int, group_id: str, kind: str, error: Error, now_s: float) -> Message:
    metadata = Metadata(
        run_id=run_id,
        message_id="",
        src_node_id=SERVER_NODE_ID,
        dst_node_id=SERVER_NODE_ID,
        reply_to_message_id=message_id,
        group_id=group_id,
        message_type=kind,
        created_at=now_s,
        ttl=0.0,
    )
    return identified(make_message(metadata=metadata, error=error))


def identified(message: Message) -> Message:
    """Return a message with its id, by which Flower knows it: a digest of what is in it."""
    message.metadata.__dict__["_message_id"] = message.object_id
    return message
