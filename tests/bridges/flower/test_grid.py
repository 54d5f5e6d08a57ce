"""ServerApps on simulated time: results as in Flower itself, times by hand, and errors as Flower makes them."""

import random
import time

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra 'flower' is not installed")

from flwr.app import ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import (
    Bulyan,
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedMedian,
    FedProx,
    FedTrimmedAvg,
    FedYogi,
    Krum,
    MultiKrum,
)

from fedsim.bridges.flower import Expected, FromInstruction, FromReplies, SimulatedGrid
from fedsim.bridges.flower.messages import LATE, LOST, RAISED
from fedsim.bridges.flower.randomness import Randomness
from fedsim.errors import ScenarioError
from fedsim.streams import Streams
from tests.support.flower_apps import initial_arrays, make_client_app, make_server_app, partition
from tests.support.flower_reference import ImmediateGrid, context_of, run_in_flower
from tests.support.plain_links import Lost, plain_scenario

NODES = 5
STRATEGIES = {
    "fedavg": FedAvg,
    "fedavgm": lambda: FedAvgM(server_learning_rate=0.9, server_momentum=0.5),
    "fedadam": lambda: FedAdam(eta=0.05, tau=1e-3),
    "fedadagrad": lambda: FedAdagrad(eta=0.05, tau=1e-3),
    "fedyogi": lambda: FedYogi(eta=0.05, tau=1e-3),
    "fedprox": lambda: FedProx(proximal_mu=0.5),
    "fedmedian": FedMedian,
    "fedtrimmedavg": lambda: FedTrimmedAvg(beta=0.2),
    "krum": lambda: Krum(num_malicious_nodes=1),
    "multikrum": lambda: MultiKrum(num_malicious_nodes=1, num_nodes_to_select=3),
    "bulyan": lambda: Bulyan(num_malicious_nodes=0),
    "dp-fixed": lambda: DifferentialPrivacyServerSideFixedClipping(FedAvg(), 0.3, 0.5, NODES),
    "dp-adaptive": lambda: DifferentialPrivacyServerSideAdaptiveClipping(FedAvg(), 0.3, NODES),
}
BY_SIZE = FromInstruction(lambda message, context: len(partition(int(context.node_config["partition-id"]))[1]))


def numbers(result):
    """Return what a strategy's result holds, as lists."""
    metrics = (result.train_metrics_clientapp, result.evaluate_metrics_clientapp, result.evaluate_metrics_serverapp)
    return [
        [array.tolist() for array in result.arrays.to_numpy_ndarrays()],
        [{number: dict(found) for number, found in each.items()} for each in metrics],
    ]


def immediate(strategy, nodes=NODES):
    """Return the result of a strategy whose ClientApps are called at once."""
    results = {}
    with Randomness(Streams(0)).of_server():
        make_server_app(strategy, results)(ImmediateGrid(make_client_app(), nodes), context_of(0, 1))
    return results["result"]


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_find_what_they_find_without_a_clock(name):
    results = {}
    history = SimulatedGrid(plain_scenario(NODES), make_client_app()).serve(make_server_app(STRATEGIES[name](), results))
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
