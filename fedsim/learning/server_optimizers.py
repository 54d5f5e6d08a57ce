"""How a server goes from its model and one aggregated update to its next model.

Federated optimisation as a pair of pure functions (Reddi et al., "Adaptive Federated Optimization", ICLR 2021,
Algorithm 1, SERVEROPT): `ServerOptimizer.init` gives the state before the first step, `ServerOptimizer.step` one model
and one update to the next model and the next state. The learner forms the update from whatever has arrived, keeps the
state on the handle of the model that the step gave, and hands both to the next step. An optimiser keeps nothing, so
runs share nothing, and a server that restarts from its model also has the state.

The update is always what federated averaging would add to the model of the server that steps:

=====================  ================================================================================================
flat server            ``sum of w_i h_i`` over the updates of one aggregation; one step for each aggregation
FedBuff                the same over one full buffer, weights times ``server_rate / buffer``; one step for each buffer
FedAsync               ``a (x_client - x)`` with ``a = mixing * law(staleness)``; one step for each arrival
SAFA                   the cache's mean minus the model; one step for each round
edge server            as a flat server; the state stays at the edge server when it fetches the cloud's model
cloud                  the mean of edge servers' models minus the cloud's model, under the rule ``rounds.edges.server``
=====================  ================================================================================================

Only parameters are stepped on. Buffers (running statistics of batch normalisation, counters) are averaged under every
rule, since they are no gradients.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsim.arrays import FloatArray, Vector
from fedsim.errors import ContractError
from fedsim.registry import Component, Registry

ServerState = Mapping[str, NDArray[Any]]
"""What an optimiser keeps between two steps: arrays under names of its own; read-only once a step has returned them."""

_SUM_TOLERANCE: Final = 1e-9
"""By how much weights of a mean may miss 1, far above the rounding of a sum of thousands."""


class ServerOptimizer(Component, ABC):
    """The server's rule; derive from it, add options as fields, and write `step`.

    Attributes
    ----------
    adds_update : bool
        Whether the next model is ``model + update`` and no state is kept. The learner then adds the weighted updates
        to the model in float64 and rounds once, instead of rounding the update first.
    """

    adds_update: ClassVar[bool] = False

    def init(self, parameters: int) -> ServerState:
        """Return the state before the first step; no arrays by default.

        Parameters
        ----------
        parameters : number of parameters p of the model
        """
        return {}

    @abstractmethod
    def step(self, model: Vector, update: Vector, state: ServerState) -> tuple[Vector, ServerState]:
        """Return the next model's parameters and the next state, from these arguments alone.

        Parameters
        ----------
        model : float32 array of shape (p,), read-only
            Parameters of the server's present model.
        update : float32 array of shape (p,), read-only
            What federated averaging would add to them: minus the pseudo-gradient of Reddi et al.
        state : what the last step returned, or `init`
        """


class FedAvg(ServerOptimizer):
    """Federated averaging: the update is added to the model (McMahan et al., AISTATS 2017).

    With weights that sum to one and all updates from the same base this is the average of the clients' models,
    equation 2 of the PAUSE paper. It is gradient descent with rate 1 on the pseudo-gradient.
    """

    adds_update: ClassVar[bool] = True

    def step(self, model: Vector, update: Vector, state: ServerState) -> tuple[Vector, ServerState]:
        """Return the model plus the update."""
        return _sum_of(model, update), {}


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
    """

    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    learning_rate: Annotated[float, Field(gt=0)] = 1.0

    def init(self, parameters: int) -> ServerState:
        """Return a velocity of zero."""
        return {"velocity": np.zeros(parameters, dtype=np.float32)}

    def step(self, model: Vector, update: Vector, state: ServerState) -> tuple[Vector, ServerState]:
        """Return the model moved by the new velocity, and this."""
        velocity = (self.momentum * state["velocity"].astype(np.float64) + update).astype(np.float32)
        return _sum_of(model, self.learning_rate * velocity.astype(np.float64)), {"velocity": velocity}


def aggregated(
    optimizer: ServerOptimizer,
    parameters: int,
    model: Vector,
    differences: Sequence[Vector],
    weights: FloatArray,
    state: ServerState | None,
) -> tuple[Vector, ServerState | None]:
    """Return the next model and state of a server to which updates have come.

    Sums are taken in float64 in the order of the updates.

    Parameters
    ----------
    optimizer : the server's rule
    parameters : how many coordinates of a model, the first ones, are parameters
    model : float32 array of shape (d,)
    differences : n float32 arrays of shape (d,)
    weights : as the server chose them, shape (n,)
    state : of the model; None before the first step
    """
    total = model.astype(np.float64) if optimizer.adds_update else np.zeros(model.size)
    for difference, weight in zip(differences, weights.tolist(), strict=True):
        total += weight * difference.astype(np.float64)
    if optimizer.adds_update:
        return total.astype(np.float32), None
    return stepped(optimizer, parameters, model, total.astype(np.float32), state)


def stepped(
    optimizer: ServerOptimizer, parameters: int, model: Vector, update: Vector, state: ServerState | None
) -> tuple[Vector, ServerState]:
    """Return the next model and state after one update.

    Arguments are those of `aggregated`, ``update`` of shape (d,).

    Raises
    ------
    ContractError
        If the optimiser does not return as many parameters as it was given.
    """
    before = optimizer.init(parameters) if state is None else state
    found, after = optimizer.step(_read_only(model[:parameters]), _read_only(update[:parameters]), before)
    if np.shape(found) != (parameters,):
        raise ContractError(
            f"{type(optimizer).__name__}.step returned parameters of shape {np.shape(found)}; ({parameters},) is needed"
        )
    buffers = _sum_of(model[parameters:], update[parameters:])
    # Copies: a state that the optimiser writes on later would reach into models of other lines of descent.
    kept = {name: _read_only(np.array(values)) for name, values in after.items()}
    return np.concatenate([np.asarray(found, dtype=np.float32), buffers]), kept


def difference_from(current: Vector, base: Vector, sent: Vector) -> Vector:
    """Return how far base + sent is from the current model, in float64 and rounded to float32 once.

    Where both are the same model it is what was sent, bit by bit. All arrays have shape (d,).
    """
    if np.array_equal(base, current):
        return sent
    return (sent.astype(np.float64) + base - current).astype(np.float32)


def weighted_mean(vectors: Sequence[Vector], weights: FloatArray) -> Vector:
    """Return the weighted mean of whole models: sums in float64, in their order, rounded to float32 once.

    Parameters
    ----------
    vectors : n float32 arrays of shape (d,)
    weights : shape (n,), of sum 1
    """
    total = np.zeros(vectors[0].size)
    for vector, weight in zip(vectors, weights.tolist(), strict=True):
        total += weight * vector.astype(np.float64)
    return total.astype(np.float32)


def checked_weights(weights: FloatArray, count: int, what: str, *, of_a_mean: bool = False) -> FloatArray:
    """Return a copy of weights, or refuse them.

    Parameters
    ----------
    weights : shape (count,)
    count : how many there must be
    what : what is weighted, for messages
    of_a_mean : whether they must be at least 0 and of sum 1

    Raises
    ------
    ValueError
        Unless they are ``count`` finite numbers; for a mean, at least 0 and of sum 1.
    """
    chosen = np.array(weights, dtype=np.float64)
    if chosen.shape != (count,) or not np.all(np.isfinite(chosen)):
        raise ValueError(f"weights: {weights!r}; one finite number for each of {count} {what}")
    if of_a_mean and (np.any(chosen < 0) or abs(chosen.sum() - 1) > _SUM_TOLERANCE):
        raise ValueError(f"weights: {weights!r}; for a mean of {what} they are at least 0 and sum to 1")
    return chosen


def _sum_of(model: Vector, addend: NDArray[np.floating[Any]]) -> Vector:
    return (model.astype(np.float64) + addend).astype(np.float32)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


SERVER_OPTIMIZERS: Final = Registry(
    "server optimizer",
    "fedsim.aggregators",
    ("init", "step"),
    {
        "fedavg": "fedsim.learning.server_optimizers:FedAvg",
        "fedavgm": "fedsim.learning.server_optimizers:FedAvgM",
    },
    default="fedavg",
)
