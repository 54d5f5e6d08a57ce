"""Flower's `Grid` on the clock of a scenario."""

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Never
from unittest.mock import patch

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from fedsim.bridges.flower.client_apps import ClientApps
from fedsim.bridges.flower.curve import watched_strategies
from fedsim.bridges.flower.exchanges import Exchange, Replies
from fedsim.bridges.flower.foresight import Foresight, FromReplies
from fedsim.bridges.flower.messages import SERVER_NODE_ID, instructions_of, unknown_message
from fedsim.bridges.flower.playing import Counts, Playing, RunIsOver
from fedsim.bridges.flower.randomness import Randomness, Seeder
from fedsim.bridges.flower.timeouts import NOTICED_AFTER_S, UntilTimeout
from fedsim.bridges.flower.waiting import simulated_waiting
from fedsim.bridges.testbed import OPEN_END, Testbed
from fedsim.errors import ScenarioError
from fedsim.history import History
from fedsim.rounds import Progress
from fedsim.scenario import Scenario
from fedsim.streams import Streams

_LOG: Final = logging.getLogger("fedsim")
_RUN_ID: Final = 1
_NAMES: Final = "accuracy", "loss"
_ROUNDED: Final = 1e-9
MOST_LOOKS: Final = 1_000_000
"""Looks and sleeps in a row without a message, 6 days of them a second, after which no message is expected any more."""


class SimulatedGrid(Grid):
    """Sends the messages of a ServerApp over the network of a scenario, to a ClientApp on each of its clients.

    Nodes are the scenario's clients, numbered as partitions. Each call of `send_and_receive` is one round of the
    history: every message is a participation of its node, whose download has the bits of the message, whose upload has
    those of the reply, and whose work is what the reply reports. The round ends by the scenario's policy, at the
    timeout of the call, or once every node has answered or is known to be lost. Besides, time passes in `sleep`, and in
    `get_node_ids` while no node is available.

    Size and work of a reply are needed when its message leaves. Where `foresight` knows them, the ClientApp runs when
    the ServerApp takes the reply, so never for one that is late or lost. Elsewhere it runs when the message leaves; by
    default that is the first message of its type to each node (see `fedsim.bridges.flower.foresight`).

    What comes back in place of a reply:

    * A node that was not available, or was lost ``noticed_after_s`` or longer ago: an error NODE_UNAVAILABLE.
    * A client that is late: nothing. As in Flower it goes on (``late = "cancel"`` counts as ``"drop"``) and takes its
      next message after that; its reply can be pulled until then.
    * A message older than its time to live: an error MESSAGE_UNAVAILABLE.
    * A ClientApp that raises an exception: an error CLIENT_APP_RAISED_EXCEPTION.
    """

    def __init__(
        self,
        scenario: Scenario | str | Path | Mapping[str, Any],
        client_app: ClientApp,
        *,
        out: str | Path | None = None,
        replace: bool = False,
        foresight: Foresight | None = None,
        counts: Counts = "samples",
        run_config: Mapping[str, Any] | None = None,
        seeders: Sequence[Seeder] = (),
        accuracy: str = "accuracy",
        loss: str = "loss",
        noticed_after_s: float = NOTICED_AFTER_S,
        on_round: Callable[[Progress], None] | None = None,
    ) -> None:
        given = Scenario.of(scenario)
        if given.rounds.late.least_share < 1:
            raise ScenarioError(
                "rounds.late: a ClientApp does all of its work or none, and cannot be told to do a part; allowed: "
                "cancel, drop or stale"
            )
        policy = UntilTimeout(policy=given.rounds.policy, noticed_after_s=noticed_after_s)
        _ = policy.of_scenario
        late = {"rounds.late": "drop"} if given.rounds.late.cancels else {}
        played = given.replace({"rounds.policy": policy, "rounds.count": OPEN_END, **late})
        self._testbed = Testbed(played, out, replace=replace, on_round=on_round)
        self._randomness, self._run_config = Randomness(Streams(given.seed), seeders), dict(run_config or {})
        self._apps = ClientApps(client_app, given.crowd.clients, _RUN_ID, self._run_config, self._randomness)
        self.replies = Replies(self._apps, foresight or FromReplies())
        self._playing = Playing(self._testbed, policy, self.replies, counts)
        self._metrics = accuracy, loss
        self._exchanges: dict[str, Exchange] = {}
        self._left: dict[int, list[str]] = {}
        self._pulled_s = self.now_s
        self._pushed = self._weighed_rounds = self._failed = self._looks = self._no_shares = 0
        self.set_run(Run.create_empty(_RUN_ID))

    @property
    def now_s(self) -> float:
        return self._testbed.now_s

    @property
    def kinds(self) -> list[tuple[int, str]]:
        """The number of each round that was played, and the types of its messages."""
        return list(self._playing.kinds)

    @property
    def runs(self) -> dict[int, int]:
        return dict(self._apps.runs)

    def serve(self, server_app: ServerApp) -> History:
        """Run a ServerApp to its end, or to that of the scenario, and return the history.

        While it runs, what it waits by the clock of its machine is simulated time (`fedsim.bridges.flower.waiting`),
        Python's and NumPy's global random numbers come from the scenario's seed, and what a strategy does is recorded:
        its evaluations, all metrics that are numbers, and the weights of the replies that it aggregates.
        """
        config = dict(self._run_config)
        context = Context(_RUN_ID, SERVER_NODE_ID, node_config={}, state=RecordDict(), run_config=config)
        with (
            self._testbed,
            self._randomness.of_server(),
            simulated_waiting(self),
            _without_older_servers(),
            watched_strategies(self._evaluated, self._weighed),
        ):
            try:
                server_app(self, context)
            except RunIsOver:
                _LOG.warning("fedsim: the scenario has ended the run at %.9g s, before its ServerApp", self.now_s)
            counted = {
                "replies were errors, which the strategy has not used": self._failed,
                "evaluations have an accuracy that is no share in [0, 1], which is left out": self._no_shares,
            }
            history = self._testbed.finish([f"{count} {what}" for what, count in counted.items() if count])
        if self.replies.other_than_expected:
            _LOG.warning(
                "fedsim: %d replies had another size or work than was expected of them",
                self.replies.other_than_expected,
            )
        return history

    def set_run(self, run: Run) -> None:
        self._run = run
        TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = run.run_id, 1, SERVER_NODE_ID

    @property
    def run(self) -> Run:
        return Run(**vars(self._run))

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        """Return the nodes that are available now or work; if all work or are away, time passes until one is there."""
        self._look()
        return [self._apps.node_id(client) for client in self._playing.nodes()]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Take messages, which leave at the next `pull_messages` or `sleep`, and return their ids."""
        taken = list(messages)
        self._looks = 0 if taken else self._looks
        for message in taken:
            of = message.metadata
            if of.reply_to_message_id != "" or of.ttl <= 0 or not message.has_content():
                raise ValueError(f"Invalid message: {message}")
            self._apps.client(of.dst_node_id)
            self._pushed += 1
            of.__dict__["_message_id"] = f"{self._pushed:064x}"
        pushed = [
            Exchange(instruction, self._apps.client(instruction.node_id), self.now_s)
            for instruction in instructions_of(taken)
        ]
        for client in {one.client for one in pushed} & self._left.keys():
            there = [name for name in self._left[client] if name in self._exchanges]
            self._left[client] = [name for name in there if not self._exchanges[name].is_answered(self.now_s)]
            for name in set(there).difference(self._left[client]):
                del self._exchanges[name]
        self._exchanges.update({one.instruction.id: one for one in pushed})
        return [one.instruction.id for one in pushed]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return the replies that are there, in the order of their messages.

        If there is none and no time has passed since the last call, it waits for the first: a loop of pulls goes on.
        """
        self._look()
        wanted = set(message_ids)
        found = [unknown_message(one, self._run.run_id, self.now_s) for one in sorted(wanted - set(self._exchanges))]
        if not found and self.now_s == self._pulled_s:
            exchanges = self._exchanges
            self._playing.play_to_first(exchanges.values(), [exchanges[name] for name in exchanges if name in wanted])
        self._pulled_s = self.now_s
        return [*found, *self._replies_to(wanted)]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Play a round with messages, and return their replies in the order of the messages."""
        ids = set(self.push_messages(messages))
        own = [self._exchanges[name] for name in self._exchanges if name in ids]
        self._playing.play(self._exchanges.values(), math.inf if timeout is None else float(timeout), own)
        replies = self._replies_to(ids)
        for one in own:
            if one.instruction.id in self._exchanges:
                self._left.setdefault(one.client, []).append(one.instruction.id)
        return replies

    def _replies_to(self, names: set[str]) -> list[Message]:
        """Return what there is of replies to some messages, in the order in which they were pushed."""
        found = []
        for name, exchange in list(self._exchanges.items()):
            reply = self.replies.reply(exchange, self.now_s) if name in names else None
            if reply is not None:
                found.append(reply)
                del self._exchanges[name]
        self._looks = 0 if found else self._looks
        return found

    def sleep(self, seconds: float) -> None:
        """Let simulated time pass, in which messages that were pushed are answered."""
        self._look()
        self._playing.sleep(self._exchanges.values(), seconds)

    def _look(self) -> None:
        """Refuse a ServerApp that waits for ever, for nodes or replies that do not come."""
        self._looks += 1
        if self._looks > MOST_LOOKS:
            raise ScenarioError(
                f"server_app: it has slept, or looked for nodes and replies, {MOST_LOOKS} times in a row and sent no "
                f"message, up to {self.now_s:.6g} s; allowed: fewer nodes to wait for, or rounds.until_s"
            )

    def _weighed(self, weight: Mapping[int, float]) -> None:
        """Record what a strategy has made of the replies of the round just played."""
        played = len(self._playing.kinds)
        if played == self._weighed_rounds or self._testbed.last is None or not self._playing.just_played:
            return
        self._weighed_rounds = played
        of_round = set(self._testbed.last.client[self._testbed.last.arrived].tolist())
        # What comes back in the place of a lost reply is the server's own.
        by_client = {self._apps.client(node): one for node, one in weight.items() if node != SERVER_NODE_ID}
        used = {client: one for client, one in by_client.items() if client in of_round}
        self._failed += sum(one == 0 for one in used.values())
        self._testbed.report(weights=used)

    def _evaluated(self, metrics: Mapping[str, Any]) -> None:
        numbers = {name: float(value) for name, value in metrics.items() if isinstance(value, int | float)}
        if not numbers:
            _LOG.warning(
                "fedsim: an evaluation has no metric that is a number and is not recorded; its metrics: %s",
                ", ".join(map(repr, metrics)),
            )
            return
        accuracy, loss = (numbers.get(own, numbers.get(name)) for own, name in zip(self._metrics, _NAMES, strict=True))
        if accuracy is not None and not 0.0 <= accuracy <= 1.0 + _ROUNDED:
            accuracy, self._no_shares = None, self._no_shares + 1
        others = {name: value for name, value in numbers.items() if name not in {*self._metrics, *_NAMES}}
        if accuracy is not None:
            accuracy = min(accuracy, 1.0)  # a weighted mean of ones may be a little more
        if accuracy is not None or loss is not None or others:
            self._testbed.report(accuracy=accuracy, loss=loss, metrics=others or None)


@contextmanager
def _without_older_servers() -> Iterator[None]:
    """Refuse servers that send from a pool of threads, which have no simulated time."""
    with ExitStack() as stack:
        for module in ("flwr.server.compat.app", "flwr.server.workflow.default_workflows"):
            stack.enter_context(patch(f"{module}.start_update_client_manager_thread", _refuse))
        yield


def _refuse(*_: object) -> Never:
    raise ScenarioError(
        "server_app: a server_fn, or a strategy of flwr.server, sends from threads of its own; allowed: "
        "@server_app.main() with a strategy of flwr.serverapp.strategy, or with none"
    )
