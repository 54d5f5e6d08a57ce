"""Federated averaging, with and without the momentum of the server."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fedsim.arrays import Vector, blocks
from fedsim.learning.server_optimizers.contracts import ServerOptimizer, ServerState, sum_of


class FedAvg(ServerOptimizer):
    """Federated averaging: the update is added to the model (McMahan et al., AISTATS 2017).

    With weights that sum to one and all updates from the same base this is the average of the clients' models,
    equation 2 of the PAUSE paper. It is gradient descent with rate 1 on the pseudo-gradient.

    Examples
    --------
    >>> model, update = np.array([1.0, 2.0], dtype=np.float32), np.array([0.5, -1.0], dtype=np.float32)
    >>> FedAvg().step(model, update, {})[0].tolist()
    [1.5, 1.0]
    """

    adds_update: ClassVar[bool] = True

    def step(self, model: Vector, update: Vector, state: ServerState) -> tuple[Vector, ServerState]:
        return sum_of(model, update), {}


class FedAvgM(ServerOptimizer):
    """Server momentum: ``v <- momentum * v + update``, then ``x <- x + learning_rate * v``; v starts at zero.

    FedAvgM (Hsu, Qi and Brown, "Measuring the effects of non-identical data distribution for federated visual
    classification", 2019, section 4.2; there the pseudo-gradient is minus the update, and the rate is 1). The update
    enters v whole, without a factor ``1 - momentum``: a constant update moves the model by
    ``learning_rate / (1 - momentum)`` times itself in the long run.

    Attributes
    ----------
    momentum : float in [0, 1)
    learning_rate : float > 0

    Examples
    --------
    >>> optimizer, update = FedAvgM(momentum=0.5), np.ones(1, dtype=np.float32)
    >>> model, state = np.zeros(1, dtype=np.float32), optimizer.init(1)
    >>> for _ in range(3):  # steps of 1, 1.5 and 1.75
    ...     model, state = optimizer.step(model, update, state)
    >>> float(model[0]), float(state["velocity"][0])
    (4.25, 1.75)
    """

    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    learning_rate: Annotated[float, Field(gt=0)] = 1.0

    def init(self, parameters: int) -> ServerState:
        return {"velocity": np.zeros(parameters, dtype=np.float32)}

    def step(self, model: Vector, update: Vector, state: ServerState) -> tuple[Vector, ServerState]:
        moved, velocity = (np.empty(model.shape, dtype=np.float32) for _ in range(2))
        for at in blocks(model.size):
            velocity[at] = self.momentum * state["velocity"][at].astype(np.float64) + update[at]
            moved[at] = sum_of(model[at], self.learning_rate * velocity[at].astype(np.float64))
        return moved, {"velocity": velocity}
