"""A Flower app that knows of no simulated time: softmax regression on handwritten digits, with NumPy."""

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import Strategy
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.datasets import load_digits

TEST, EPOCHS, BATCH = 397, 2, 10
_features, _kinds = load_digits(return_X_y=True)
_order = np.random.default_rng(0).permutation(len(_kinds))
# In a random order, with one-hot labels; the first ones are to test on.
FEATURES, LABELS = _features[_order] / 16.0, np.eye(10)[_kinds[_order]]
client_app = ClientApp()


def partition(number: int, of: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return features and labels of a partition; most of its digits are of a few kinds."""
    features, labels = FEATURES[TEST:], LABELS[TEST:]
    kinds = labels.argmax(axis=1) + np.random.default_rng(7).normal(0.0, 1.5, len(labels))
    mine = np.array_split(np.argsort(kinds), of)[number]
    return features[mine], labels[mine]


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Train for some epochs and return the model."""
    node, config = context.node_config, message.content["config"]
    features, labels = partition(int(node["partition-id"]), int(node["num-partitions"]))
    weights, bias = (array.copy() for array in message.content["arrays"].to_numpy_ndarrays())
    rate, order = float(config["lr"]), np.random.default_rng(int(config["server-round"]))
    for _ in range(EPOCHS):
        for batch in np.array_split(order.permutation(len(labels)), max(1, len(labels) // BATCH)):
            error = (softmax(features[batch] @ weights + bias, axis=1) - labels[batch]) / len(batch)
            weights -= rate * features[batch].T @ error
            bias -= rate * error.sum(axis=0)
    metrics = MetricRecord({"num-examples": len(labels)})
    return Message(RecordDict({"arrays": ArrayRecord([weights, bias]), "metrics": metrics}), reply_to=message)


def evaluate(_: int, arrays: ArrayRecord) -> MetricRecord:
    """Return the accuracy of a model on the test digits."""
    weights, bias = arrays.to_numpy_ndarrays()
    right = (FEATURES[:TEST] @ weights + bias).argmax(axis=1) == LABELS[:TEST].argmax(axis=1)
    return MetricRecord({"accuracy": float(right.mean())})


def server_app(strategy: Strategy, rounds: int, timeout_s: float) -> ServerApp:
    """Return an app that runs a strategy, whose rounds wait for a time at most."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        model, config = ArrayRecord([np.zeros((64, 10)), np.zeros(10)]), ConfigRecord({"lr": context.run_config["lr"]})
        strategy.start(grid, model, num_rounds=rounds, timeout=timeout_s, train_config=config, evaluate_fn=evaluate)

    return app
