"""A small Flower app: logistic regression with NumPy on data that its clients make, and servers with strategies."""

from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

FEATURES = 4
_STEPS = 3


def partition(number):
    """Return features and labels of a partition, whose size differs from that of others."""
    generator = np.random.default_rng(1000 + number)
    features = generator.normal(size=(12 + 4 * number, FEATURES))
    truth = np.array([1.0, -2.0, 0.5, 1.5])
    return features, (features @ truth + 0.3 * generator.normal(size=len(features)) > 0).astype(float)


def loss_and_accuracy(weights, bias, features, labels):
    margin = (features @ weights + bias[0]) * (2 * labels - 1)
    return float(np.logaddexp(0.0, -margin).mean()), float((margin > 0).mean())


def initial_arrays():
    return ArrayRecord([np.zeros(FEATURES), np.zeros(1)])


def make_client_app(called: Callable[[str, int], Any] = lambda *_: None):
    """Return the client app; it tells ``called`` of each call, with its kind and the number of the partition."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        number = int(context.node_config["partition-id"])
        called("train", number)
        features, labels = partition(number)
        config = message.content["config"]
        weights, bias = (array.copy() for array in message.content["arrays"].to_numpy_ndarrays())
        start_weights, start_bias, proximal = weights.copy(), bias.copy(), float(config.get("proximal-mu", 0.0))
        for _ in range(_STEPS):
            error = 1 / (1 + np.exp(-(features @ weights + bias[0]))) - labels
            weights -= float(config["lr"]) * (features.T @ error / len(labels) + proximal * (weights - start_weights))
            bias -= float(config["lr"]) * (error.mean() + proximal * (bias - start_bias))
        visits = int(context.state["visits"]["count"]) if "visits" in context.state else 0
        context.state["visits"] = MetricRecord({"count": visits + 1})
        loss, _ = loss_and_accuracy(weights, bias, features, labels)
        metrics = {"num-examples": len(labels), "train_loss": loss, "visits": visits + 1}
        content = RecordDict({"arrays": ArrayRecord([weights, bias]), "metrics": MetricRecord(metrics)})
        return Message(content, reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        number = int(context.node_config["partition-id"])
        called("evaluate", number)
        features, labels = partition(number)
        weights, bias = message.content["arrays"].to_numpy_ndarrays()
        loss, accuracy = loss_and_accuracy(weights, bias, features, labels)
        metrics = {"num-examples": len(labels), "loss": loss, "accuracy": accuracy}
        return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=message)

    return app


def make_server_app(strategy, results: dict[str, Any], *, rounds=3):
    """Return a server app that runs a strategy and leaves its result under ``"result"``."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        features, labels = partition(99)

        def evaluated(number: int, arrays: ArrayRecord) -> MetricRecord:
            loss, accuracy = loss_and_accuracy(*arrays.to_numpy_ndarrays(), features, labels)
            return MetricRecord({"loss": loss, "accuracy": accuracy})

        results["result"] = strategy.start(
            grid=grid,
            initial_arrays=initial_arrays(),
            num_rounds=rounds,
            timeout=3600.0,
            train_config=ConfigRecord({"lr": 0.5}),
            evaluate_fn=evaluated,
        )

    return app


def make_plain_server_app(do):
    app = ServerApp()
    app.main()(do)
    return app


def ask(grid, node_id, kind="train", *, ttl=None):
    """Return a message to a node with the first model."""
    records = {"arrays": initial_arrays(), "config": ConfigRecord({"lr": 0.5})}
    return grid.create_message(RecordDict(records), kind, node_id, "1", ttl)
