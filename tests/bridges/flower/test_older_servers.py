"""ServerApps of Flower's older kind: whole cohorts, waiting in simulated time, and the results of the newer kind."""

import time

import pytest

pytest.importorskip("flwr", reason="the extra 'flower' is not installed")

import numpy as np
from flwr.app import Context
from flwr.client import NumPyClient
from flwr.clientapp import ClientApp
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
from flwr.compat.server import ServerAppComponents
from flwr.server import ServerConfig
from flwr.server import strategy as older
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAdam, FedAvg

from fedsim.bridges.flower import SimulatedGrid
from tests.support.flower_apps import FEATURES, loss_and_accuracy, make_client_app, make_server_app, partition
from tests.support.plain_links import Lost, plain_scenario

NODES = 9


class LogisticClient(NumPyClient):
    """What `tests.support.flower_apps` does, in the words of Flower's older clients."""

    def __init__(self, number):
        self.features, self.labels = partition(number)

    def fit(self, parameters, config):
        weights, bias = (array.copy() for array in parameters)
        for _ in range(3):
            error = 1 / (1 + np.exp(-(self.features @ weights + bias[0]))) - self.labels
            weights -= 0.5 * self.features.T @ error / len(self.labels)
            bias -= 0.5 * error.mean()
        return [weights, bias], len(self.labels), {}

    def evaluate(self, parameters, config):
        loss, accuracy = loss_and_accuracy(*parameters, self.features, self.labels)
        return loss, len(self.labels), {"accuracy": accuracy}


def client_fn(context: Context):
    return LogisticClient(int(context.node_config["partition-id"])).to_client()


def weighted(metrics):
    """Return the accuracy of all clients' examples."""
    return {"accuracy": sum(n * found["accuracy"] for n, found in metrics) / sum(n for n, _ in metrics)}


def server_app(strategy_of, kept, rounds=2, timeout=None, **options):
    """Return an app whose strategy leaves its newest parameters in a list."""

    def aggregate_fit(self, server_round, results, failures):
        kept.append((len(results), len(failures)))
        aggregated = strategy_of.aggregate_fit(self, server_round, results, failures)
        kept.append([] if aggregated[0] is None else parameters_to_ndarrays(aggregated[0]))
        return aggregated

    strategy = type("Watched", (strategy_of,), {"aggregate_fit": aggregate_fit})

    def server_fn(context):
        initial = ndarrays_to_parameters([np.zeros(FEATURES), np.zeros(1)])
        chosen = strategy(initial_parameters=initial, evaluate_metrics_aggregation_fn=weighted, **options)
        return ServerAppComponents(strategy=chosen, config=ServerConfig(num_rounds=rounds, round_timeout=timeout))

    return ServerApp(server_fn=server_fn)


@pytest.mark.parametrize(
    ("strategy", "newer", "options"), [(older.FedAvg, FedAvg, {}), (older.FedAdam, FedAdam, {"eta": 0.05, "tau": 1e-3})]
)
def test_results_are_those_of_the_newer_kind(strategy, newer, options):
    kept, results = [], {}
    history = SimulatedGrid(plain_scenario(NODES), ClientApp(client_fn)).serve(server_app(strategy, kept, **options))
    SimulatedGrid(plain_scenario(NODES), make_client_app()).serve(make_server_app(newer(**options), results, rounds=2))
    for got, expected in zip(kept[-1], results["result"].arrays.to_numpy_ndarrays(), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert [entry for entry in kept if isinstance(entry, tuple)] == [(NODES, 0)] * 2
    # Training and evaluation of two rounds, each with the whole crowd at once, whatever the number of threads.
    assert history.column("rounds", "selected").tolist() == [NODES] * 4
    assert history.column("evaluations", "round").tolist() == [2, 4]
    curve = results["result"].evaluate_metrics_clientapp
    assert history.column("evaluations", "accuracy").tolist() == pytest.approx([curve[n]["accuracy"] for n in (1, 2)])


def test_a_timeout_is_simulated_and_lost_clients_are_failures():
    """Client 1 vanishes; the round ends after its time to live of 30 s, which is before its silence is noticed."""
    kept = []
    changes = {
        "rounds.policy": {"kind": "deadline", "deadline_s": 1e4},
        "devices.dropout": Lost(clients=(1,), after_s=0.01),
    }
    grid = SimulatedGrid(plain_scenario(3, **changes), ClientApp(client_fn))
    history = grid.serve(server_app(older.FedAvg, kept, rounds=1, timeout=30.0, fraction_evaluate=0.0))
    assert kept[0] == (2, 1)
    assert history.column("rounds", "duration_s").tolist() == [30.0]


def test_nodes_are_awaited_in_simulated_time(tmp_path):
    """The third node is there from 40 s on; Flower's thread looks every 5 s."""
    path = tmp_path / "intervals.csv"
    path.write_text("device,start_s,end_s\n0,0,1000\n1,20,1000\n2,38,1000\n")
    availability = {"kind": "traces", "path": str(path), "mapping": "sequential", "period_s": 1000.0}
    changes = {"devices.availability": availability, "rounds.policy": {"kind": "deadline", "deadline_s": 100.0}}
    grid, began_s = SimulatedGrid(plain_scenario(3, **changes), ClientApp(client_fn)), time.monotonic()
    app = server_app(older.FedAvg, [], rounds=1, fraction_evaluate=0.0, min_available_clients=3, min_fit_clients=3)
    history = grid.serve(app)
    assert history.column("participations", "start_s").tolist() == [40.0] * 3
    assert time.monotonic() - began_s < 20
