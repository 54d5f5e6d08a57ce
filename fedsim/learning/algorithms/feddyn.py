"""FedDyn: dynamic regularisation, whose local optima agree with that of the whole."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fedsim.arrays import Vector
from fedsim.learning.algorithms.contracts import Gathered, LocalAlgorithm, LocalTask, Memory, Start, Stepped


class FedDyn(LocalAlgorithm):
    """The loss gains ``alpha / 2 |w - w_server|^2 - <g_i, w>``.

    It is Algorithm 1 of Acar et al., "Federated learning based on dynamic regularization", ICLR 2021. The client's
    memory of its gradient is g_i, from zero: after a training that moved the model by d_i, ``g_i <- g_i - alpha d_i``.
    The server keeps h, from zero: with m clients in the run, of which some deliver, ``h <- h - (alpha / m) * sum of
    d_i``. Its model moves by the mean of d_i minus ``h / alpha``; the mean has the weights of the samples, where the
    paper's are equal. Buffers of batch normalisation are averaged alone.

    Attributes
    ----------
    alpha : float > 0
        The paper tunes it over 0.001, 0.01, 0.1.

    Examples
    --------
    >>> from fedsim.learning.models.layout import ModelLayout
    >>> layout = ModelLayout(np.zeros(2, dtype=np.float32), 2, np.zeros(2, dtype=bool), 1)
    >>> gathered = Gathered(np.array([0.5, 1.0]), np.array([1.0, 2.0]), 2, {}, layout, clients=4)
    >>> stepped = FedDyn(alpha=0.5).step(gathered)
    >>> stepped.shared["h"].tolist(), stepped.update.tolist()  # -0.5 / 4 times [1, 2]; [0.5, 1] minus h / 0.5
    ([-0.125, -0.25], [0.75, 1.5])
    """

    corrects: ClassVar[bool] = True
    remembers: ClassVar[bool] = True
    server_keeps: ClassVar[bool] = True

    alpha: Annotated[float, Field(gt=0)] = 0.01

    @property
    def pull(self) -> float:
        return self.alpha

    def begin(self, task: LocalTask) -> Start:
        return Start(task.model, -task.memory["gradient"] if task.memory else None)

    def end(self, task: LocalTask, difference: Vector) -> Memory:
        before = task.memory["gradient"].astype(np.float64) if task.memory else 0.0
        return {"gradient": (before - self.alpha * difference[: task.layout.parameters]).astype(np.float32)}

    def drift_weight(self, steps: int, learning_rate: float) -> float:
        return 1.0

    def step(self, gathered: Gathered) -> Stepped:
        parameters = gathered.layout.parameters
        before = gathered.shared["h"].astype(np.float64) if gathered.shared else np.zeros(parameters)
        h = before - self.alpha / gathered.clients * gathered.drift[:parameters]
        update = gathered.update.copy()
        update[:parameters] -= h / self.alpha
        return Stepped(update, {"h": h.astype(np.float32)})
