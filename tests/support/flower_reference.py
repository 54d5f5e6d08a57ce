"""Plain runs of Flower apps to compare with: a grid that calls the ClientApp at once, and Flower's own simulation."""

import sys
import warnings
from types import ModuleType
from unittest.mock import patch

from flwr.app import Context, Message, RecordDict
from flwr.clientapp.client_app import ClientAppException
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.server.superlink.fleet.vce.backend import Backend
from flwr.serverapp import Grid
from flwr.simulation import run_simulation
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

FIRST = 10_000_000_001


def context_of(number, nodes):
    config = {"partition-id": number, "num-partitions": nodes}
    return Context(run_id=1, node_id=FIRST + number, node_config=config, state=RecordDict(), run_config={})


class ImmediateGrid(Grid):
    """Calls the ClientApp for each message as it is pushed; no time passes."""

    def __init__(self, client_app, nodes):
        self._app, self._contexts = client_app, {FIRST + i: context_of(i, nodes) for i in range(nodes)}
        self._replies = {}
        self.set_run(Run.create_empty(1))
        TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 1

    def set_run(self, run):
        self._run = run

    @property
    def run(self):
        return self._run

    def create_message(self, content, message_type, dst_node_id, group_id, ttl=None):
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self):
        return list(self._contexts)

    def push_messages(self, messages):
        ids = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = message.object_id
            ids.append(message.metadata.message_id)
            received = message_from_proto(message_to_proto(message))
            self._replies[ids[-1]] = self._app(received, self._contexts[message.metadata.dst_node_id])
        return ids

    def pull_messages(self, message_ids):
        return [self._replies.pop(one) for one in message_ids if one in self._replies]

    def send_and_receive(self, messages, *, timeout=None):
        return self.pull_messages(self.push_messages(messages))


class InThisProcess(Backend):
    """A backend of Flower's simulation that calls the ClientApp where Flower's own has Ray do it."""

    def build(self, app_fn):
        self._app_fn = app_fn

    @property
    def num_workers(self):
        return 1

    def is_worker_idle(self):
        return True

    def terminate(self):
        """Nothing is left running."""

    def process_message(self, message, context):
        try:
            return self._app_fn()(message, context), context
        except Exception as error:
            raise ClientAppException(str(error)) from error


def run_in_flower(server_app, client_app, nodes):
    """Run apps in Flower's own simulation: its server, its link state and its queues; only Ray is left out."""
    place = "flwr.server.superlink.fleet.vce.backend.raybackend"
    stand_in = ModuleType(place)
    stand_in.RayBackend = InThisProcess
    with patch.dict(sys.modules, {place: stand_in}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what Flower itself uses
        run_simulation(server_app, client_app, nodes, backend_name="in-this-process")
