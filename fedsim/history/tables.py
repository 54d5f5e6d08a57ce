"""fedsim.history.tables."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

X = Literal["time", "round"]
TableName = Literal[
    "participations", "rounds", "evaluations", "edge_rounds", "edge_participations", "probes", "accounts"
]
Y = Literal["accuracy", "loss", "leakage", "duration"]


def causal_mean(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Return the mean of each value and up to ``window - 1`` before it (fewer at the beginning).

    >>> causal_mean(np.array([1.0, 3.0, 5.0, 7.0]), 2).tolist()
    [1.0, 2.0, 4.0, 6.0]
    """
    if not values.size:
        return values
    padded = np.concatenate([np.zeros(window - 1), values])
    sums = np.lib.stride_tricks.sliding_window_view(padded, window).sum(axis=1)
    return np.asarray(sums / np.minimum(np.arange(1, values.size + 1), window))
