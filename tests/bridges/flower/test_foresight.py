"""What is known of a reply before its ClientApp has run, and when it runs."""

import pytest

pytest.importorskip("flwr", reason="the extra 'flower' is not installed")

from flwr.app import Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.serde import recorddict_to_proto
from flwr.common.serde_utils import metadata_to_proto
from flwr.serverapp.strategy import FedAvg

from fedsim.bridges.flower import FromInstruction, FromReplies, SimulatedGrid
from fedsim.errors import ScenarioError
from tests.support.flower_apps import ask, make_client_app, make_plain_server_app, make_server_app
from tests.support.plain_links import plain_scenario


def serialised_bits(message):
    """Return the length of a message's metadata and records as bytes, in bits."""
    parts = metadata_to_proto(message.metadata), recorddict_to_proto(message.content)
    return 8 * sum(len(part.SerializeToString()) for part in parts)


class Weighed:
    def __init__(self, app):
        self._app, self.down, self.up = app, [], []

    def __call__(self, message, context):
        self.down.append(serialised_bits(message))
        reply = self._app(message, context)
        self.up.append(serialised_bits(reply))
        return reply


@pytest.mark.parametrize("remember", [True, False])
def test_bits_and_work_are_those_of_the_records(remember):
    """Each message and reply is as large as its bytes; partition k has 12 + 4 k examples, 100 of them a second."""
    weighed = Weighed(make_client_app())
    grid = SimulatedGrid(plain_scenario(), weighed, foresight=FromReplies(remember=remember))
    history = grid.serve(make_server_app(FedAvg(), {}, rounds=2))
    table = history.participations.to_pandas()
    assert sorted(table["downlink_bits"]) == sorted(weighed.down)
    assert sorted(table["uplink_bits"]) == sorted(weighed.up)
    assert table["compute_s"].tolist() == pytest.approx([(12 + 4 * k) / 100 for k in table["client"]])
    assert grid.replies.other_than_expected == grid.replies.in_vain == 0


def test_an_app_runs_before_its_node_has_another_message_though_nobody_takes_the_reply():
    """Client 2 is late in each of 3 rounds and works on one message after the other: 2 of 6 by the end of the run."""
    called, results = [], {}
    app = make_client_app(lambda *call: called.append(call))
    policy = {"kind": "k-fastest", "k": 2}
    grid = SimulatedGrid(plain_scenario(slowdown=50.0, **{"rounds.policy": policy}), app)
    grid.serve(make_server_app(FedAvg(), results, rounds=3))
    assert called.count(("train", 2)) == called.count(("evaluate", 2)) == 1
    assert called.count(("train", 1)) == 3
    assert grid.replies.in_vain == 0
    assert results["result"].train_metrics_clientapp[3]["visits"] == 3.0, "of the two that answered"


@pytest.mark.parametrize(("asked", "left"), [({"timeout": 0.001}, {}), ({}, {"ttl": 0.001})])
def test_a_node_that_nobody_waits_for_works_all_the_same(asked, left):
    visits = []

    def do(grid, context):
        nodes = list(grid.get_node_ids())
        for one, other in ((asked, left), ({}, {})):
            replies = grid.send_and_receive([ask(grid, nodes[0], **other)], **one)
            visits.extend(reply.content["metrics"]["visits"] for reply in replies if reply.has_content())

    grid = SimulatedGrid(plain_scenario(), make_client_app())
    grid.serve(make_plain_server_app(do))
    assert visits == [2]
    assert grid.runs == {0: 2}


def test_sizes_are_remembered_where_only_work_is_declared():
    """The first reply to train is taken to be as large as its message, that to evaluate to be without its arrays."""
    weighed = Weighed(make_client_app())
    foresight = FromInstruction(lambda *_: 10.0)
    grid = SimulatedGrid(plain_scenario(1), weighed, foresight=foresight)
    strategy = FedAvg(min_train_nodes=1, min_evaluate_nodes=1, min_available_nodes=1)
    history = grid.serve(make_server_app(strategy, {}, rounds=2))
    uploads = history.column("participations", "uplink_bits").tolist()
    assert uploads[0] == weighed.down[0]
    assert weighed.down[1] / 4 < uploads[1] < weighed.down[1]
    assert uploads[2:] == weighed.up[:2]
    assert grid.replies.other_than_expected == 2, "the two that were taken to be of some size"


def quiet_app(metrics):
    app = ClientApp()

    def answer(message, context):
        return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=message)

    app.train()(answer)
    app.query()(answer)
    return app


def seconds_of_work(kind, metrics, **options):
    def do(grid, context):
        grid.send_and_receive([ask(grid, node, kind) for node in grid.get_node_ids()])

    history = SimulatedGrid(plain_scenario(1), quiet_app(metrics), **options).serve(make_plain_server_app(do))
    return history.column("participations", "compute_s").tolist()


def test_work_by_a_metric_or_a_function():
    assert seconds_of_work("train", {"steps": 7}, foresight=FromReplies("steps")) == [0.07]
    by_both = FromReplies(lambda _, reply: 2 * reply.content["metrics"]["steps"])
    assert seconds_of_work("train", {"steps": 7}, foresight=by_both) == [0.14]
    assert seconds_of_work("train", {"num-examples": 30}, counts="compute_s") == [30.0]
    assert seconds_of_work("query", {"size": 7}) == [0.0]


@pytest.mark.parametrize(
    ("metrics", "work", "words"),
    [
        ({"steps": 7}, None, "no metric 'num-examples', which states its work; its metrics: 'steps'"),
        ({"num-examples": -1}, None, "-1 for a message 'train' to node 10000000001; allowed: a number of at least 0"),
        ({"steps": [1, 2]}, "steps", r"\[1, 2\] for a message 'train'"),
    ],
)
def test_work_that_is_none(metrics, work, words):
    with pytest.raises(ScenarioError, match=words):
        seconds_of_work("train", metrics, foresight=FromReplies(work))
