"""What becomes of messages: arrivals and timeouts by hand, clients that are late or lost, nodes that come and go."""

import time

import pytest

pytest.importorskip("flwr", reason="the extra 'flower' is not installed")

from flwr.app import Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg

from fedsim.bridges.flower import FromInstruction, SimulatedGrid
from fedsim.bridges.flower.messages import LATE, LOST, RAISED, message_bits
from fedsim.errors import ScenarioError
from tests.support.flower_apps import (
    ask,
    make_client_app,
    make_plain_server_app,
    make_server_app,
)
from tests.support.plain_links import Lost, plain_scenario


def served(scenario, do, **options):
    """Return the grid, what its ClientApps were called for, and the history of a server's main function."""
    called = []
    # Work of 1 s, and an upload of 1 s for client 0, 2 s for client 1 and so on; the download takes far less.
    foresight = FromInstruction(lambda *_: 100.0, lambda *_: 5e4)
    grid = SimulatedGrid(scenario, make_client_app(lambda *call: called.append(call)), foresight=foresight, **options)
    history = grid.serve(make_plain_server_app(lambda grid, _: do(grid)))
    return grid, called, history


def outcomes(replies, nodes):
    """Return the outcome of each message by the place of its node: True for a reply, or the code of an error."""
    by_message = {reply.metadata.reply_to_message_id: reply for reply in replies}
    return [
        None if id_ not in by_message else by_message[id_].error.code if by_message[id_].has_error() else True
        for id_ in nodes
    ]


def round_of(grid, clients=None, **options):
    """Send one message to each node, and return the outcomes."""
    nodes = list(grid.get_node_ids())
    messages = [ask(grid, node) for node in nodes]
    replies = grid.send_and_receive(messages, **options)
    return outcomes(replies, [message.metadata.message_id for message in messages])


def test_a_round_ends_with_its_last_reply():
    """The download has the size of the message; client k needs k + 1 times the seconds of client 0."""
    seen = {}

    def do(grid):
        messages = [ask(grid, node) for node in grid.get_node_ids()]
        seen["replies"] = list(grid.send_and_receive(messages))
        seen["bits"], seen["now_s"] = message_bits(messages[0]), grid.now_s

    grid, called, history = served(plain_scenario(), do)
    down_s = seen["bits"] / 1e5
    ends_s = [(k + 1) * (down_s + 1.0) + 1.0 for k in range(3)]
    assert seen["now_s"] == pytest.approx(ends_s[2])
    assert history.column("participations", "end_s").tolist() == pytest.approx(ends_s)
    assert [reply.metadata.created_at for reply in seen["replies"]] == pytest.approx(ends_s)
    assert called == [("train", 0), ("train", 1), ("train", 2)]
    assert grid.kinds == [(1, "train")]


@pytest.mark.parametrize(("late", "missing"), [("cancel", LATE), ("drop", None)])
def test_late_apps_never_run(late, missing):
    """After 3.5 s client 0 (2 s) and client 1 (3 s) have answered, and client 2 (4 s) has not."""
    seen = {}

    def do(grid):
        seen["first"] = round_of(grid, timeout=3.5)
        seen["now_s"] = grid.now_s

    _, called, history = served(plain_scenario(**{"rounds.late": late, "network.down_bps": 1e12}), do)
    assert seen["first"] == [True, True, missing]
    assert seen["now_s"] == pytest.approx(3.5)
    assert called == [("train", 0), ("train", 1)]
    assert [row["outcome"] for row in history.participations.to_pylist()] == ["delivered", "delivered", "late"]


def test_the_policy_of_the_scenario_ends_rounds_too():
    seen = {}

    def do(grid):
        seen["outcomes"], seen["now_s"] = round_of(grid, timeout=3600.0), grid.now_s

    policy = {"kind": "k-fastest", "k": 2}
    _, called, _ = served(plain_scenario(**{"rounds.policy": policy, "network.down_bps": 1e12}), do)
    assert seen == {"outcomes": [True, True, LATE], "now_s": pytest.approx(3.0)}
    assert called == [("train", 0), ("train", 1)]


def test_a_late_reply_can_be_pulled_later():
    """Client 2 answers at 4 s; its ClientApp runs when the server takes the reply, at 10 s."""
    seen = {}

    def do(grid):
        messages = [ask(grid, node) for node in grid.get_node_ids()]
        ids = [message.metadata.message_id for message in messages]
        first = grid.send_and_receive(messages, timeout=3.5)
        ids = [message.metadata.message_id for message in messages]
        seen["first"], seen["nodes"] = outcomes(first, ids), len(list(grid.get_node_ids()))
        seen["at once"] = list(grid.pull_messages(ids[2:]))
        time.sleep(6.5)
        seen["now_s"], seen["nodes then"] = grid.now_s, len(list(grid.get_node_ids()))
        (reply,) = grid.pull_messages(ids[2:])
        seen["late"] = reply.metadata.created_at, reply.has_content()
        seen["again"] = [reply.error.code for reply in grid.pull_messages(ids[2:])]

    scenario = plain_scenario(**{"rounds.late": "drop", "network.down_bps": 1e12})
    _, called, _ = served(scenario, do)
    assert seen == {
        "first": [True, True, None],
        "nodes": 2,
        "at once": [],
        "now_s": pytest.approx(10.0),
        "nodes then": 3,
        "late": (pytest.approx(4.0), True),
        "again": [LATE],
    }
    assert called == [("train", 0), ("train", 1), ("train", 2)]


@pytest.mark.parametrize(
    ("timeout", "code", "end_s"),
    [(None, LOST, 7.1), (8.0, LOST, 7.1), (5.0, LATE, 5.0)],
)
def test_lost_nodes_are_known_after_their_silence(timeout, code, end_s):
    """Client 1 vanishes after 0.1 s, which the server knows 7 s later."""
    seen = {}

    def do(grid):
        seen["outcomes"], seen["now_s"] = round_of(grid, timeout=timeout), grid.now_s

    changes = {"rounds.policy": {"kind": "deadline", "deadline_s": 1e4}, "devices.dropout": Lost(clients=(1,))}
    scenario = plain_scenario(**changes, **{"network.down_bps": 1e12})
    _, called, history = served(scenario, do, noticed_after_s=7.0)
    assert seen == {"outcomes": [True, code, True], "now_s": pytest.approx(end_s)}
    assert called == [("train", 0), ("train", 2)]
    assert history.column("rounds", "dropped").tolist() == [1]


def test_messages_expire():
    """A message with 3.5 s to live ends like a timeout of 3.5 s, even where the call would wait longer."""
    seen = {}

    def do(grid):
        messages = [ask(grid, node, ttl=3.5) for node in grid.get_node_ids()]
        replies = grid.send_and_receive(messages)
        seen["outcomes"] = outcomes(replies, [message.metadata.message_id for message in messages])
        seen["now_s"] = grid.now_s

    scenario = plain_scenario(**{"rounds.late": "drop", "network.down_bps": 1e12})
    served(scenario, do)
    assert seen["outcomes"][:2] == [True, True]
    assert seen["now_s"] == pytest.approx(3.5)


def test_an_app_that_raises_is_an_error_of_its_node_alone():
    app = ClientApp()

    @app.train()
    def train(message, context):
        if context.node_config["partition-id"] == 1:
            raise RuntimeError("no data here")
        return Message(RecordDict(), reply_to=message)

    seen = {}

    def do(grid):
        messages = [ask(grid, node) for node in grid.get_node_ids()]
        replies = list(grid.send_and_receive(messages))
        seen["codes"] = [reply.error.code if reply.has_error() else True for reply in replies]
        seen["reason"] = replies[1].error.reason

    foresight = FromInstruction(lambda *_: 1.0)
    SimulatedGrid(plain_scenario(), app, foresight=foresight).serve(make_plain_server_app(lambda grid, _: do(grid)))
    assert seen["codes"] == [True, RAISED, True]
    assert "no data here" in seen["reason"]


@pytest.fixture
def coming_and_going(tmp_path):
    """Client 0 is there from 0 to 50 s, client 1 from 20 to 90 s, client 2 from 40 to 100 s, of each 100 s."""
    path = tmp_path / "intervals.csv"
    path.write_text("device,start_s,end_s\n0,0,50\n1,20,90\n2,40,100\n")
    availability = {"kind": "traces", "path": str(path), "mapping": "sequential", "period_s": 100.0}
    policy = {"kind": "deadline", "deadline_s": 1e4}
    return plain_scenario(**{"devices.availability": availability, "rounds.policy": policy, "network.down_bps": 1e12})


def test_nodes_come_and_go(coming_and_going):
    seen = []

    def do(grid):
        for wait_s in (0, 30, 15, 15, 35):
            time.sleep(wait_s)
            seen.append((grid.now_s, [node - 10_000_000_001 for node in grid.get_node_ids()]))

    served(coming_and_going, do)
    assert seen == [(0.0, [0]), (30.0, [0, 1]), (45.0, [0, 1, 2]), (60.0, [1, 2]), (95.0, [2])]


def test_strategies_wait_for_nodes_in_simulated_seconds(coming_and_going):
    """Flower's strategies look each second; three nodes are there from 40 s on. No second of real time passes."""
    results, began_s = {}, time.monotonic()
    strategy = FedAvg(min_train_nodes=3, min_available_nodes=3, fraction_evaluate=0.0)
    called = []
    grid = SimulatedGrid(coming_and_going, make_client_app(lambda *call: called.append(call)))
    history = grid.serve(make_server_app(strategy, results, rounds=1))
    assert history.column("participations", "start_s").tolist() == [40.0] * 3
    assert len(called) == 3
    assert time.monotonic() - began_s < 20


def test_a_message_to_a_node_that_is_away(coming_and_going):
    seen = {}

    def do(grid):
        nodes = [10_000_000_001 + client for client in range(2)]
        messages = [ask(grid, node) for node in nodes]
        replies = grid.send_and_receive(messages, timeout=60.0)
        seen["outcomes"] = outcomes(replies, [message.metadata.message_id for message in messages])

    _, called, _ = served(coming_and_going, do)
    assert seen["outcomes"] == [True, LOST]
    assert called == [("train", 0)]


def test_messages_to_one_node_follow_each_other():
    """Two messages of 2 s each to client 0, pushed together."""
    seen = {}

    def do(grid):
        node = next(iter(grid.get_node_ids()))
        ids = list(grid.push_messages([ask(grid, node), ask(grid, node)]))
        seen["pulled"] = outcomes(grid.pull_messages(ids), ids)
        seen["now_s"] = grid.now_s

    grid, _, _ = served(plain_scenario(**{"network.down_bps": 1e12}), do)
    assert seen == {"pulled": [True, True], "now_s": pytest.approx(4.0)}
    assert grid.kinds == [(1, "train"), (2, "train")]


def test_the_scenario_can_end_the_run():
    def do(grid):
        while True:
            round_of(grid)

    _, _, history = served(plain_scenario(**{"rounds.until_s": 10.0, "network.down_bps": 1e12}), do)
    assert history.column("rounds", "start_s").tolist() == pytest.approx([0.0, 4.0, 8.0])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rounds.policy": {"kind": "fedbuff", "concurrency": 2}}, "rounds.policy: fedbuff does not wait"),
        (
            {"rounds.late": "partial", "rounds.policy": {"kind": "deadline", "deadline_s": 1.0}},
            "rounds.late: a ClientApp does all of its work",
        ),
    ],
)
def test_scenarios_that_no_server_app_can_have(changes, words):
    with pytest.raises(ScenarioError, match=words):
        SimulatedGrid(plain_scenario(**changes), make_client_app())


def test_a_node_that_is_none():
    with pytest.raises(ScenarioError, match="dst_node_id: 7 is no node; allowed: 10000000001 to 10000000003"):
        served(plain_scenario(), lambda grid: grid.push_messages([ask(grid, 7)]))
