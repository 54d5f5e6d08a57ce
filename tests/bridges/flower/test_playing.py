"""What becomes of messages: arrivals and timeouts by hand, clients that are late or lost, nodes that come and go."""

import time

import pytest

pytest.importorskip("flwr", reason="the extra 'flower' is not installed")

from flwr.app import Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg
from hypothesis import given, strategies as st

from fedsim.bridges.flower import FromInstruction, SimulatedGrid, grid as grid_module
from fedsim.bridges.flower.messages import LATE, LOST, message_bits
from fedsim.errors import ScenarioError
from tests.support.flower_apps import ask, make_client_app, make_plain_server_app, make_server_app
from tests.support.plain_links import Lost, plain_scenario


def served(scenario, do, **options):
    called = []
    # Work of 1 s, and an upload of 1 s for client 0, 2 s for client 1 and so on; the download takes far less.
    foresight = FromInstruction(lambda *_: 100.0, lambda *_: 5e4)
    grid = SimulatedGrid(scenario, make_client_app(lambda *call: called.append(call)), foresight=foresight, **options)
    history = grid.serve(make_plain_server_app(lambda grid, _: do(grid)))
    return grid, called, history


def outcomes(replies, messages):
    """Return the outcome of each message: True for a reply, the code of an error, or None."""
    by_message = {reply.metadata.reply_to_message_id: reply for reply in replies}
    found = [by_message.get(message.metadata.message_id) for message in messages]
    return [reply and (reply.error.code if reply.has_error() else True) for reply in found]


NODES = [10_000_000_001 + client for client in range(3)]
QUICK = {"network.down_bps": 1e12}  # downloads take next to no time


def round_of(scenario, *, timeout=None, ttl=None, clients=3, **options):
    """Send one message to each node; return the outcomes and the second after them, the calls, and the history."""
    seen = {}

    def do(grid):
        messages = [ask(grid, node, ttl=ttl) for node in NODES[:clients]]
        seen["outcomes"] = outcomes(grid.send_and_receive(messages, timeout=timeout), messages)
        seen["now_s"] = grid.now_s

    _, called, history = served(scenario, do, **options)
    assert called == [("train", k) for k in range(clients) if seen["outcomes"][k] is True], "late apps never run"
    return seen["outcomes"], seen["now_s"], history.participations.column("outcome").to_pylist()


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


LOSING = {"rounds.policy": {"kind": "deadline", "deadline_s": 1e4}, "devices.dropout": Lost(clients=(1,))}
DELIVERED, GONE = ["delivered"] * 2, ["delivered", "dropped", "delivered"]


@pytest.mark.parametrize(
    ("changes", "asked", "expected", "end_s", "said"),
    [
        ({"rounds.late": "cancel"}, {"timeout": 3.5}, [True, True, None], 3.5, [*DELIVERED, "late"]),
        ({"rounds.late": "drop"}, {"timeout": 3.5}, [True, True, None], 3.5, [*DELIVERED, "late"]),
        ({"rounds.late": "drop"}, {"ttl": 3.5}, [True, True, LATE], 3.5, [*DELIVERED, "late"]),
        (
            {"rounds.policy": {"kind": "k-fastest", "k": 2}},
            {"timeout": 3600.0},
            [True, True, None],
            3.0,
            [*DELIVERED, "late"],
        ),
        (LOSING, {}, [True, LOST, True], 7.1, GONE),
        (LOSING, {"timeout": 8.0}, [True, LOST, True], 7.1, GONE),
        (LOSING, {"timeout": 5.0}, [True, None, True], 5.0, GONE),
    ],
    ids=["cancel", "drop", "messages expire", "policy", "lost", "lost, long timeout", "lost, short timeout"],
)
def test_clients_that_are_late_or_lost(changes, asked, expected, end_s, said):
    """Clients answer after 2, 3 and 4 s; one that vanishes after 0.1 s is given up 7 s later."""
    found = round_of(plain_scenario(**QUICK, **changes), **asked, noticed_after_s=7.0)
    assert found == (expected, pytest.approx(end_s), said)


def test_a_late_reply_can_be_pulled_later():
    """Client 2 answers at 4 s; its ClientApp runs when the server takes the reply, at 10 s."""
    seen = {}

    def do(grid):
        messages = [ask(grid, node) for node in grid.get_node_ids()]
        seen["first"] = outcomes(grid.send_and_receive(messages, timeout=3.5), messages)
        ids, seen["nodes"] = [messages[2].metadata.message_id], len(list(grid.get_node_ids()))
        seen["at once"] = list(grid.pull_messages(ids))
        time.sleep(6.5)
        seen["now_s"], seen["nodes then"] = grid.now_s, len(list(grid.get_node_ids()))
        (reply,) = grid.pull_messages(ids)
        seen["late"] = reply.metadata.created_at, reply.has_content()
        seen["again"] = [reply.error.code for reply in grid.pull_messages(ids)]
        seen["next"] = [reply.has_content() for reply in grid.send_and_receive([ask(grid, NODES[2])])]

    _, called, _ = served(plain_scenario(**QUICK, **{"rounds.late": "drop"}), do)
    assert seen == {
        "first": [True, True, None],
        "nodes": 3,
        "at once": [],
        "now_s": pytest.approx(10.0),
        "nodes then": 3,
        "late": (pytest.approx(4.0), True),
        "again": [LATE],
        "next": [True],
    }
    assert called == [("train", 0), ("train", 1), ("train", 2), ("train", 2)]


def test_a_reply_that_nobody_takes_goes_with_the_next_message_but_one():
    """Client 2 needs 4 s: its first reply arrives while its second message waits, and its third leaves after that."""
    seen = []

    def do(grid):
        messages = [ask(grid, NODES[2]) for _ in range(3)]
        for message in messages:
            grid.send_and_receive([message], timeout=2.5)
        seen.extend(outcomes(grid.pull_messages([messages[0].metadata.message_id]), messages[:1]))

    served(plain_scenario(**QUICK), do)
    assert seen == [LATE]


def test_a_busy_node_takes_its_next_message_when_it_is_done():
    """Node 2 needs 30 s once, the timeout is 15 s: as a deployed Flower 1.42 it misses two rounds and runs three times.

    Other work takes 0.1 s. The second round waits for its message to node 2 up to the timeout, as nothing is refused.
    """
    seen, runs, app, zero = [], {}, ClientApp(), {"kind": "constant", "value_s": 0.0}

    @app.train()
    def train(message, context):
        node = context.node_config["partition-id"]
        runs[node] = runs.get(node, 0) + 1
        metrics = MetricRecord({"num-examples": 10, "runs": runs[node]})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    def do(grid):
        for timeout in (15.0, 15.0, None):
            messages = [ask(grid, node) for node in grid.get_node_ids()]
            replies = grid.send_and_receive(messages, timeout=timeout)
            by_message = {one.metadata.reply_to_message_id: one.content["metrics"]["runs"] for one in replies}
            seen.append((round(grid.now_s, 6), [by_message.get(one.metadata.message_id) for one in messages]))

    works_s = iter((30.0, *[0.1] * 9))
    foresight = FromInstruction(lambda _, context: next(works_s) if context.node_config["partition-id"] == 2 else 0.1)
    scenario = plain_scenario(network={"kind": "latency", "downlink": zero, "uplink": zero})
    grid = SimulatedGrid(scenario, app, counts="compute_s", foresight=foresight)
    grid.serve(make_plain_server_app(lambda grid, _: do(grid)))
    assert seen == [(15.0, [1, 1, None]), (30.0, [2, 2, None]), (30.2, [3, 3, 3])]
    assert grid.kinds == [(number, "train") for number in (1, 2, 3, 4)], "what waited for node 2 is one by itself"


def test_where_all_nodes_work_the_first_reply_is_not_lost():
    """Both nodes are late; the first one is free after 2 s, and its reply is there."""
    seen = {}

    def do(grid):
        ids = list(grid.push_messages([ask(grid, node) for node in NODES[:2]]))
        time.sleep(0.5)
        seen["nodes"], seen["now_s"] = len(list(grid.get_node_ids())), round(grid.now_s, 6)
        seen["replies"] = [one.has_content() for one in grid.pull_messages(ids)]

    served(plain_scenario(2, **QUICK), do)
    assert seen == {"nodes": 2, "now_s": 2.0, "replies": [True]}


def queues(nodes, works_s, sleep_s):
    """Return when a ServerApp finds each message answered, where each node is a queue."""
    free_s, sent, found, now_s = [0.0] * nodes, [], [], 0.0
    waiting, pushed = set(), list(range(nodes))
    while len(found) < 8:
        for node in pushed:
            waiting.add(len(sent))
            free_s[node] = max(free_s[node], now_s) + works_s[len(sent)]
            sent.append((free_s[node], node))
        now_s = now_s + sleep_s if sleep_s else max(now_s, min(sent[i][0] for i in waiting))
        there = sorted(i for i in waiting if sent[i][0] <= now_s)
        found += [(now_s, i) for i in there]
        waiting.difference_update(there)
        pushed = [sent[i][1] for i in there for _ in range(1 + (i == 0))]
    return found


@pytest.mark.parametrize("sleep_s", [1.0, 0.0])
@given(st.integers(1, 4), st.lists(st.sampled_from((0.5, 2.0, 3.25, 7.0)), min_size=20, max_size=20))
def test_nodes_are_queues(sleep_s, nodes, works_s):
    """A ServerApp sends a node two messages for the reply to its first one, and one for each other reply."""
    seen = []

    def main(grid, context):
        flying, pushed, count = {}, list(range(nodes)), 0
        while len(seen) < 8:
            for node in pushed:
                message = ask(grid, NODES[0] + node)
                message.content["config"]["work_s"] = works_s[count]
                flying[next(iter(grid.push_messages([message])))] = count, node
                count += 1
            time.sleep(sleep_s)
            names = [one.metadata.reply_to_message_id for one in grid.pull_messages(list(flying))]
            there = sorted(flying.pop(name) for name in names)
            seen.extend((grid.now_s, i) for i, _ in there)
            pushed = [node for i, node in there for _ in range(1 + (i == 0))]

    zero = {"kind": "constant", "value_s": 0.0}
    scenario = plain_scenario(nodes, network={"kind": "latency", "downlink": zero, "uplink": zero})
    foresight = FromInstruction(lambda message, _: float(message.content["config"]["work_s"]))
    grid = SimulatedGrid(scenario, make_client_app(), counts="compute_s", foresight=foresight)
    grid.serve(make_plain_server_app(main))
    assert seen == queues(nodes, works_s, sleep_s)


def there_in(path, *intervals):
    path.write_text("\n".join(["device,start_s,end_s", *intervals]))
    availability = {"kind": "traces", "path": str(path), "mapping": "sequential", "period_s": 100.0}
    policy = {"kind": "deadline", "deadline_s": 1e4}
    return plain_scenario(**QUICK, **{"devices.availability": availability, "rounds.policy": policy})


@pytest.fixture
def coming_and_going(tmp_path):
    return there_in(tmp_path / "intervals.csv", "0,0,50", "1,20,90", "2,40,100")


def test_nodes_come_and_go(coming_and_going):
    seen = []

    def do(grid):
        for wait_s in (0, 30, 15, 15, 35):
            time.sleep(wait_s)
            seen.append((grid.now_s, [NODES.index(node) for node in grid.get_node_ids()]))

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
    assert round_of(coming_and_going, timeout=60.0, clients=2)[0] == [True, LOST]


@pytest.mark.parametrize(
    ("wait", "outcome", "end_s"), [({"timeout": 5.0}, LOST, 5.0), ({"ttl": 7.0}, LATE, 7.0), ({}, True, 54.0)]
)
def test_where_all_nodes_are_away_a_wait_ends_at_its_instant(wait, outcome, end_s, tmp_path):
    scenario = there_in(tmp_path / "intervals.csv", *(f"{client},50,60" for client in range(3)))
    assert round_of(scenario, **wait)[:2] == ([outcome] * 3, pytest.approx(end_s))


def test_the_scenario_can_end_the_run():
    def do(grid):
        while True:
            grid.send_and_receive([ask(grid, node) for node in NODES])

    _, _, history = served(plain_scenario(**QUICK, **{"rounds.until_s": 10.0}), do)
    assert history.column("rounds", "start_s").tolist() == pytest.approx([0.0, 4.0, 8.0])


def test_waits_for_nodes_that_never_come_end(monkeypatch):
    """The strategy looks for four nodes of three: to the last second, or to a number of looks."""
    monkeypatch.setattr(grid_module, "MOST_LOOKS", 40)
    app = make_server_app(FedAvg(min_available_nodes=4), {}, rounds=1)
    ended = SimulatedGrid(plain_scenario(**QUICK, **{"rounds.until_s": 10.0}), make_client_app())
    assert ended.serve(app).rounds.num_rows == 0
    assert ended.now_s == 10.0
    with pytest.raises(ScenarioError, match="server_app: it has slept, or looked for nodes and replies, 40 times"):
        SimulatedGrid(plain_scenario(**QUICK), make_client_app()).serve(app)


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
