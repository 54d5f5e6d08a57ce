"""ServerApps with a ``server_fn``, or with a strategy of Flower's older kind, on simulated time.

Their server sends a cohort from a pool of threads, as many messages at a time as the machine has cores for, and waits
for nodes in a thread of its own. Here the messages of a cohort leave together, and waiting takes simulated time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch

from flwr.app import Message
from flwr.common import Code
from flwr.server import server as older
from flwr.server.client_manager import SimpleClientManager
from flwr.server.compat.grid_client_proxy import GridClientProxy
from flwr.serverapp import Grid

from fedsim.bridges.flower.waiting import Clock

_LOOKS_EVERY_S: Final = 5.0
"""Seconds between two looks for new nodes of Flower's own thread."""


@contextmanager
def older_servers(grid: Grid, clock: Clock) -> Iterator[None]:
    """Let older servers send cohorts as a whole, and wait for nodes in simulated time."""

    def wait_for(manager: Any, num_clients: int, timeout: int = 86400) -> bool:
        end_s = clock.now_s + timeout
        while manager.num_available() < num_clients and clock.now_s < end_s:
            clock.sleep(_LOOKS_EVERY_S)
        return bool(manager.num_available() >= num_clients)

    with ExitStack() as stack:
        for many, one in (("fit_clients", older.fit_client), ("evaluate_clients", older.evaluate_client)):
            stack.enter_context(patch.object(older, many, _Cohorts(grid, one)))
        stack.enter_context(patch.object(SimpleClientManager, "wait_for", wait_for))
        yield


class _Collected(Exception):  # noqa: N818  # a message on its way, no error
    """A message was taken instead of being sent."""


class _Cohorts:
    """What stands for Flower's function that calls all clients of a cohort.

    Each client's call is made twice: the first one gives the message, and the second one receives the reply.
    """

    def __init__(self, grid: Grid, one: Callable[..., Any]) -> None:
        self._grid, self._one = grid, one

    def __call__(
        self,
        client_instructions: Sequence[tuple[Any, Any]],
        max_workers: int | None,
        timeout: float | None,
        group_id: int,
    ) -> tuple[list[Any], list[Any]]:
        """Call the clients; return results, and failures, both in the order of the instructions."""
        desks = [_Desk() for _ in client_instructions]
        for desk, (client, instruction) in zip(desks, client_instructions, strict=True):
            self._call(desk, client, instruction, timeout, group_id)
        messages = [desk.message for desk in desks if desk.message is not None]
        by_id = {reply.metadata.reply_to_message_id: reply for reply in self._grid.send_and_receive(messages)}
        results: list[Any] = []
        failures: list[Any] = []
        for desk, (client, instruction) in zip(desks, client_instructions, strict=True):
            if desk.message is not None:
                desk.replies = [by_id[id_] for id_ in (desk.message.metadata.message_id,) if id_ in by_id]
                desk.outcome = self._call(desk, client, instruction, timeout, group_id)
            outcome = desk.outcome
            good = not isinstance(outcome, Exception) and outcome[1].status.code == Code.OK
            (results if good else failures).append(outcome)
        return results, failures

    def _call(self, desk: "_Desk", client: Any, instruction: Any, timeout: float | None, group_id: int) -> Any:
        """Return what the call of a client returns or raises; a message that it would send stays at the desk."""
        with ExitStack() as stack:
            if isinstance(client, GridClientProxy):
                stack.enter_context(patch.object(client, "grid", desk))
            try:
                desk.outcome = self._one(client, instruction, timeout, group_id)
            except _Collected:
                desk.outcome = None
            except Exception as error:  # as Flower: what a call raises is one of the cohort's failures
                desk.outcome = error
        return desk.outcome


class _Desk:
    """Takes the message of one client, and later gives its replies."""

    def __init__(self) -> None:
        self.message: Message | None = None
        self.replies: list[Message] | None = None
        self.outcome: Any = None

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """Take the only message, or give the replies to it."""
        if self.replies is not None:
            return self.replies
        (self.message,) = messages
        raise _Collected
