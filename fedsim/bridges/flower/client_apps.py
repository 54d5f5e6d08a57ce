"""The nodes of a simulated grid, and the runs of their ClientApp."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.constant import NUM_PARTITIONS_KEY, PARTITION_ID_KEY
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto

from fedsim.bridges.flower.messages import RAISED, Instruction
from fedsim.bridges.flower.randomness import Randomness
from fedsim.errors import ScenarioError

_LOG: Final = logging.getLogger("fedsim")
_FIRST_NODE_ID: Final = 10_000_000_001


@dataclass(frozen=True)
class Made:
    message: Message
    reply: Message
    state: RecordDict


class ClientApps:
    def __init__(
        self, app: ClientApp, clients: int, run_id: int, run_config: Mapping[str, Any], randomness: Randomness
    ) -> None:
        self._app, self._clients, self._randomness = app, clients, randomness
        self._run_id, self._run_config = run_id, dict(run_config)
        self._contexts: dict[int, Context] = {}
        self.runs: dict[int, int] = {}

    def node_id(self, client: int) -> int:
        return _FIRST_NODE_ID + client

    def client(self, node_id: int) -> int:
        """Return the client of a node; refuse an id that no node has."""
        client = node_id - _FIRST_NODE_ID
        if 0 <= client < self._clients:
            return client
        last = self.node_id(self._clients - 1)
        raise ScenarioError(f"dst_node_id: {node_id} is no node; allowed: {_FIRST_NODE_ID} to {last}")

    def context(self, client: int) -> Context:
        if client not in self._contexts:
            self._contexts[client] = Context(
                run_id=self._run_id,
                node_id=self.node_id(client),
                node_config={PARTITION_ID_KEY: client, NUM_PARTITIONS_KEY: self._clients},
                state=RecordDict(),
                run_config=dict(self._run_config),
            )
        return self._contexts[client]

    def run(self, instruction: Instruction) -> Made:
        """Run the app on a message; the state of its client does not change before `keep`."""
        client = self.client(instruction.node_id)
        message, kept = instruction.message(), self.context(client)
        context = replace(kept, state=_copied(kept.state))
        number = self.runs.get(client, 0)
        self.runs[client] = number + 1
        try:
            with self._randomness.of_client(client, number):
                reply = self._app(message, context)
        except Exception as error:  # as Flower: what an app raises reaches the server as a message
            _LOG.warning("fedsim: the ClientApp of partition %d raised %r", client, error, exc_info=True)
            return Made(message, Message(Error(RAISED, f"{type(error)}:<'{error}'>"), reply_to=message), context.state)
        if not isinstance(reply, Message) or reply.metadata.reply_to_message_id != instruction.id:
            raise ScenarioError(
                f"client_app: the ClientApp returned {type(reply).__name__} for a message {instruction.kind!r} to "
                f"partition {client}; allowed: a Message(..., reply_to=the message)"
            )
        if reply.has_content():
            # As over a network: no record is shared between client and server.
            reply.content = _copied(reply.content)
        return Made(message, reply, context.state)

    def keep(self, instruction: Instruction, made: Made) -> None:
        """Let the client of a message keep the state that its run has left."""
        self.context(self.client(instruction.node_id)).state = made.state


def _copied(records: RecordDict) -> RecordDict:
    """Return a copy of records as it would come out of a network or a file."""
    return recorddict_from_proto(recorddict_to_proto(records))
