"""ServerApps on simulated time: results as in Flower itself, times by hand, and errors as Flower makes them."""

import time

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra 'flower' is not installed")

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.compat.server import ServerAppComponents
from flwr.server import LegacyContext, ServerConfig
from flwr.server.compat.app import start_grid
from flwr.server.strategy import FedAvg as OlderFedAvg
from flwr.server.workflow import DefaultWorkflow
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedMedian,
    FedProx,
    FedYogi,
    Krum,
)

from fedsim.bridges.flower import SimulatedGrid
from fedsim.bridges.flower.messages import RAISED
from fedsim.bridges.flower.randomness import Randomness
from fedsim.errors import ScenarioError
from fedsim.results.tables import read_run
from fedsim.streams import Streams
from tests.support.families import by_default
from tests.support.flower_apps import initial_arrays, make_client_app, make_plain_server_app, make_server_app, partition
from tests.support.flower_reference import ImmediateGrid, context_of, run_in_flower
from tests.support.plain_links import plain_scenario

NODES = 5
STRATEGIES = {
    "fedavg": FedAvg,
    "fedavgm": lambda: FedAvgM(server_learning_rate=0.9, server_momentum=0.5),
    "fedadam": lambda: FedAdam(eta=0.05, tau=1e-3),
    "fedyogi": lambda: FedYogi(eta=0.05, tau=1e-3),
    "fedprox": lambda: FedProx(proximal_mu=0.5),
    "fedmedian": FedMedian,
    "krum": lambda: Krum(num_malicious_nodes=1),
    "dp-fixed": lambda: DifferentialPrivacyServerSideFixedClipping(FedAvg(), 0.3, 0.5, NODES),
    "dp-adaptive": lambda: DifferentialPrivacyServerSideAdaptiveClipping(FedAvg(), 0.3, NODES),
}


def numbers(result):
    metrics = (result.train_metrics_clientapp, result.evaluate_metrics_clientapp, result.evaluate_metrics_serverapp)
    return [
        [array.tolist() for array in result.arrays.to_numpy_ndarrays()],
        [{number: dict(found) for number, found in each.items()} for each in metrics],
    ]


def immediate(strategy, nodes=NODES):
    results = {}
    with Randomness(Streams(0)).of_server():
        make_server_app(strategy, results)(ImmediateGrid(make_client_app(), nodes), context_of(0, 1))
    return results["result"]


@pytest.mark.parametrize("name", by_default(STRATEGIES, ["fedavg", "fedadam", "krum", "dp-adaptive"]))
def test_strategies_find_what_they_find_without_a_clock(name, tmp_path):
    """FedAvg's server looks at its nodes before the first evaluation, which begins no round."""
    results = {}
    plain = make_server_app(STRATEGIES[name](), results)

    def main(grid, context):
        if name == "fedavg":
            assert len(list(grid.get_node_ids())) == NODES
        plain(grid, context)

    grid = SimulatedGrid(plain_scenario(NODES), make_client_app(), out=tmp_path / "run")
    history = grid.serve(make_plain_server_app(main))
    loaded = read_run(tmp_path / "run")
    assert all(table.equals(loaded.tables()[name]) for name, table in history.tables().items())
    assert not [note for note in history.notes if "finished from outside" in note]
    assert numbers(results["result"]) == numbers(immediate(STRATEGIES[name]()))
    curve = results["result"].evaluate_metrics_serverapp
    assert history.column("evaluations", "accuracy").tolist() == [curve[number]["accuracy"] for number in range(4)]
    assert history.column("evaluations", "loss").tolist() == [curve[number]["loss"] for number in range(4)]


@pytest.mark.slow
def test_strategies_find_what_they_find_in_flower():
    """Flower's own simulation takes replies in any order, so that sums differ in their last digits."""
    found, app = {}, ServerApp()
    chosen = ("fedavg", "fedadam", "fedprox", "fedyogi", "krum", "dp-fixed")

    @app.main()
    def one_after_another(grid, context):
        while len(list(grid.get_node_ids())) < NODES:  # Flower's nodes join while its server runs
            time.sleep(0.05)
        for name in chosen:
            results = {}
            with Randomness(Streams(0)).of_server():
                make_server_app(STRATEGIES[name](), results, rounds=2)(grid, context)
            found[name] = results["result"]

    run_in_flower(app, make_client_app(), NODES)
    for name in chosen:
        results = {}
        grid = SimulatedGrid(plain_scenario(NODES), make_client_app())
        grid.serve(make_server_app(STRATEGIES[name](), results, rounds=2))
        both = [one.arrays.to_numpy_ndarrays() for one in (results["result"], found[name])]
        for got, expected in zip(*both, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, err_msg=name)


def test_a_model_of_torch():
    """Dropout draws from torch's own generator, which is seeded for each call; equal runs are equal."""
    torch = pytest.importorskip("torch")
    app = ClientApp()

    @app.train()
    def train(message, context):
        model = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        features, labels = (torch.from_numpy(part).float() for part in partition(context.node_config["partition-id"]))
        for _ in range(3):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(features)[:, 0], labels)
            for parameter, gradient in zip(
                model.parameters(), torch.autograd.grad(loss, tuple(model.parameters())), strict=True
            ):
                parameter.data -= 0.1 * gradient
        metrics = MetricRecord({"num-examples": len(labels), "loss": loss.item()})
        return Message(RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics}), reply_to=message)

    found = []

    def main(grid, context):
        first = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(4, 1)).state_dict()
        arrays = ArrayRecord({name: torch.zeros_like(value) for name, value in first.items()})
        found.append(numbers(FedAvg(fraction_evaluate=0.0).start(grid, arrays, num_rounds=2)))

    for k in (3, 3, 2):
        fastest = plain_scenario(**{"rounds.policy": {"kind": "k-fastest", "k": k}})
        SimulatedGrid(fastest, app, seeders=[torch.manual_seed]).serve(make_plain_server_app(main))
    assert found[0] == found[1] != found[2]


def test_an_error_of_the_server_is_its_own(tmp_path):
    def main(grid, context):
        FedAvg().start(grid, initial_arrays(), num_rounds=1, train_config=ConfigRecord({"lr": 0.5}))
        raise KeyError("no more")

    grid = SimulatedGrid(plain_scenario(), make_client_app(), out=tmp_path / "run")
    with pytest.raises(KeyError, match="no more"):
        grid.serve(make_plain_server_app(main))
    kept = read_run(tmp_path / "run")
    assert kept.unfinished
    assert kept.rounds.num_rows == 1, "the second one, an evaluation, was not reported on"


def server_fn(context):
    return ServerAppComponents(strategy=OlderFedAvg(), config=ServerConfig(num_rounds=1))


OLDER_SERVERS = {
    "server_fn": lambda: ServerApp(server_fn=server_fn),
    "start_grid": lambda: make_plain_server_app(lambda grid, _: start_grid(grid=grid, strategy=OlderFedAvg())),
    "workflow": lambda: make_plain_server_app(
        lambda grid, context: DefaultWorkflow()(grid, LegacyContext(context=context, strategy=OlderFedAvg()))
    ),
}


@pytest.mark.parametrize("name", OLDER_SERVERS)
def test_older_servers_are_refused(name):
    """They send from a pool of threads, so that each message would be a round of its own."""
    grid = SimulatedGrid(plain_scenario(), make_client_app())
    with pytest.raises(ScenarioError, match=r"server_app: a server_fn, .* allowed: @server_app.main\(\) with"):
        grid.serve(OLDER_SERVERS[name]())
    assert not grid.kinds, "no round was played"


def test_evaluations_of_nodes_are_the_curve_without_others():
    results = {}

    def main(grid, context):
        results["result"] = FedAvg().start(grid, initial_arrays(), num_rounds=2, train_config=ConfigRecord({"lr": 0.5}))

    history = SimulatedGrid(plain_scenario(), make_client_app()).serve(make_plain_server_app(main))
    of_nodes = results["result"].evaluate_metrics_clientapp
    assert history.column("evaluations", "accuracy").tolist() == [of_nodes[number]["accuracy"] for number in (1, 2)]
    assert history.column("evaluations", "round").tolist() == [2, 4]


def evaluated(evaluate):
    def main(grid, context):
        strategy, config = FedAvg(fraction_evaluate=0.0), ConfigRecord({"lr": 0.5})
        strategy.start(grid, initial_arrays(), num_rounds=2, train_config=config, evaluate_fn=evaluate)

    return SimulatedGrid(plain_scenario(), make_client_app()).serve(make_plain_server_app(main))


def test_an_accuracy_that_is_no_share_ends_no_run():
    """A weighted mean of ones may be a little above 1; per cent and NaN are left out, with a note."""
    values = [1.0000000000000002, 85.0, float("nan")]

    def evaluate(number, arrays):
        return MetricRecord({"accuracy": values[number], "loss": 1.0})

    history = evaluated(evaluate)
    assert np.nan_to_num(history.column("evaluations", "accuracy"), nan=-1).tolist() == [1.0, -1.0, -1.0]
    assert "2 evaluations have an accuracy that is no share in [0, 1], which is left out" in history.notes


def test_metrics_of_other_names_are_curves_too():
    """What is named neither accuracy nor loss is a metric by its own name, and needs no accuracy beside it."""

    def evaluate(number, arrays):
        return MetricRecord({"f1": 0.5 + number / 10, "classes": [1, 2]})

    history = evaluated(evaluate)
    assert history.metrics == ["f1"]
    assert history.metric("f1").tolist() == pytest.approx([0.5, 0.6, 0.7])
    assert np.isnan(history.column("evaluations", "accuracy")).all()


def test_an_app_that_raised_is_no_used_update_and_weights_are_those_of_the_strategy():
    """FedAvg weighs by the number of examples: 20, 22 and 23 of 65."""
    app, server, raised = ClientApp(), ServerApp(), []

    class Kept(FedAvg):
        def aggregate_train(self, server_round, replies):
            taken = list(replies)
            raised.extend(reply for reply in taken if reply.has_error())
            return super().aggregate_train(server_round, taken)

    @app.train()
    def train(message, context):
        i = int(context.node_config["partition-id"])
        if i == 1:
            raise RuntimeError("no memory")
        content = {"arrays": ArrayRecord([np.ones(10)]), "metrics": MetricRecord({"num-examples": 20 + i})}
        return Message(RecordDict(content), reply_to=message)

    @server.main()
    def main(grid, context):
        Kept(fraction_evaluate=0.0).start(grid, ArrayRecord([np.zeros(10)]), num_rounds=2)

    scenario = plain_scenario().replace({"crowd.clients": 4})
    history = SimulatedGrid(scenario, app).serve(server)
    assert [(reply.error.code, "no memory" in reply.error.reason) for reply in raised] == [(RAISED, True)] * 2
    rows = history.participations.to_pandas().set_index("client").sort_index()
    assert len(rows) == 8
    for client, share in ((0, 20 / 65), (1, 0.0), (2, 22 / 65), (3, 23 / 65)):
        assert rows.loc[client, "weight"].tolist() == pytest.approx([share] * 2)
        assert set(rows.loc[client, "fate"]) == {"used" if share else "wasted-unmerged"}
    assert "2 replies were errors, which the strategy has not used" in history.notes


def test_the_run_that_messages_name():
    grid = SimulatedGrid(plain_scenario(), make_client_app())
    assert grid.run.run_id == 1
    assert [node.node_id for node in grid.get_nodes()] == list(grid.get_node_ids())
    message = grid.create_message(RecordDict(), "query", next(iter(grid.get_node_ids())), "7", ttl=5.0)
    assert (message.metadata.run_id, message.metadata.group_id, message.metadata.ttl) == (1, "7", 5.0)
    message.metadata.ttl = 0.0
    with pytest.raises(ValueError, match="Invalid message"):
        grid.push_messages([message])
