"""Softmax regression in NumPy and float64: the independent oracle of what the executor computes."""

import numpy as np

from fedsim.learning import Dataset


def scaled(images: np.ndarray) -> np.ndarray:
    return ((images.reshape(len(images), -1) / 255) - 0.5) / 0.5


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def sample_losses(weights: np.ndarray, bias: np.ndarray, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
    chances = softmax(scaled(images) @ weights.T + bias)
    return -np.log(chances[np.arange(len(labels)), labels])


def cross_entropy(weights: np.ndarray, bias: np.ndarray, images: np.ndarray, labels: np.ndarray) -> float:
    return float(sample_losses(weights, bias, images, labels).mean())


def accuracy(weights: np.ndarray, bias: np.ndarray, images: np.ndarray, labels: np.ndarray) -> float:
    return float(((scaled(images) @ weights.T + bias).argmax(axis=1) == labels).mean())


def split_linear(vector: np.ndarray, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and bias of a softmax regression from its flat vector, in float64."""
    inputs = int(np.prod(data.shape))
    wide = vector.astype(np.float64)
    return wide[: inputs * data.classes].reshape(data.classes, inputs), wide[inputs * data.classes :]
