"""A Flower app that knows of no simulated time: softmax regression on handwritten digits, with NumPy."""

from functools import lru_cache

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import Strategy
from numpy.typing import NDArray
from sklearn.datasets import load_digits

Array = NDArray[np.float64]
_TEST = 397
_EPOCHS, _BATCH = 2, 10

client_app = ClientApp()


def partition(number: int, of: int) -> tuple[Array, Array]:
    """Return features and one-hot labels of a partition; most of its digits are of a few kinds."""
    features, labels = _digits()
    features, labels = features[_TEST:], labels[_TEST:]
    generator = np.random.default_rng(7)
    kinds = labels.argmax(axis=1) + generator.normal(0.0, 1.5, len(labels))
    mine = np.array_split(np.argsort(kinds), of)[number]
    return features[mine], labels[mine]


@lru_cache
def _digits() -> tuple[Array, Array]:
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    return digits.data[order] / 16.0, np.eye(10)[digits.target[order]]


def _probabilities(weights: Array, bias: Array, features: Array) -> Array:
    scores = features @ weights + bias
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Train for some epochs and return the model."""
    config = context.node_config
    features, labels = partition(int(config["partition-id"]), int(config["num-partitions"]))
    weights, bias = (array.copy() for array in message.content["arrays"].to_numpy_ndarrays())
    generator = np.random.default_rng(int(message.content["config"]["server-round"]))
    for _ in range(_EPOCHS):
        for batch in np.array_split(generator.permutation(len(labels)), max(1, len(labels) // _BATCH)):
            error = (_probabilities(weights, bias, features[batch]) - labels[batch]) / len(batch)
            weights -= float(message.content["config"]["lr"]) * features[batch].T @ error
            bias -= float(message.content["config"]["lr"]) * error.sum(axis=0)
    metrics = MetricRecord({"num-examples": len(labels)})
    return Message(RecordDict({"arrays": ArrayRecord([weights, bias]), "metrics": metrics}), reply_to=message)


def evaluate(_: int, arrays: ArrayRecord) -> MetricRecord:
    """Return loss and accuracy of a model on the test digits."""
    features, labels = (part[:_TEST] for part in _digits())
    weights, bias = arrays.to_numpy_ndarrays()
    shares = _probabilities(weights, bias, features)
    right = shares.argmax(axis=1) == labels.argmax(axis=1)
    loss = -np.log(np.maximum((shares * labels).sum(axis=1), 1e-12)).mean()
    return MetricRecord({"accuracy": float(right.mean()), "loss": float(loss)})


def server_app(strategy: Strategy, rounds: int, timeout_s: float) -> ServerApp:
    """Return an app that runs a strategy, whose rounds wait for a time at most."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        strategy.start(
            grid=grid,
            initial_arrays=ArrayRecord([np.zeros((64, 10)), np.zeros(10)]),
            num_rounds=rounds,
            timeout=timeout_s,
            train_config=ConfigRecord({"lr": float(context.run_config["lr"])}),
            evaluate_fn=evaluate,
        )

    return app
