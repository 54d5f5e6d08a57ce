"""The contract of a server optimiser: from a model and one aggregated update to the next model.

Federated optimisation as a pair of pure functions (Reddi et al., "Adaptive Federated Optimization", ICLR 2021,
Algorithm 1, SERVEROPT). The update is what federated averaging would add to the model of the server that steps; the
room's page says what that is for each kind of server.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.answers import AnswerError, Contract, Flag, Given, in_words
from fedsim.arrays import Vector
from fedsim.registry import Component, Registry

ServerState = Mapping[str, NDArray[Any]]
"""State of an optimiser between two steps: arrays by name; read-only once a step has returned them."""


class ServerOptimizer(Component, ABC):
    """The server's rule; derive from it, add options as fields, and write `step`.

    Attributes
    ----------
    adds_update : bool
        Whether the next model is ``model + update``, without a state. The learner then adds the weighted updates
        to the model in float64 and rounds once, instead of rounding the update first.

    Examples
    --------
    >>> class Half(ServerOptimizer):
    ...     def step(self, model, update, state):
    ...         return model + np.float32(0.5) * update, {}
    >>> one = np.ones(1, dtype=np.float32)
    >>> Half().step(one, one, Half().init(1))[0].tolist()
    [1.5]
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


def _state(answer: object, _: Given) -> dict[str, NDArray[Any]]:
    if not isinstance(answer, Mapping):
        raise AnswerError(in_words(answer), "arrays by their names")
    found = {name: np.array(values) for name, values in answer.items()}
    for name, values in found.items():
        if not isinstance(name, str) or values.dtype.kind not in "fiub":
            raise AnswerError(f"{name!r} = {in_words(values)}", "arrays of numbers by their names")
    return found


def _step(answer: object, given: Given) -> tuple[Vector, ServerState]:
    """Check the next parameters, finite or not, and the next state."""
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise AnswerError(in_words(answer), "a pair of parameters and state")
    found = np.asarray(answer[0])
    if found.dtype.kind != "f" or found.shape != given["model"].shape:
        allowed = f"parameters as floating-point numbers of shape {given['model'].shape}"
        raise AnswerError(in_words(answer[0]), allowed)
    return found.astype(np.float32), _state(answer[1], given)


SERVER_OPTIMIZER: Final = Contract(
    "server optimizer", ServerOptimizer, {"adds_update": Flag(), "init": _state, "step": _step}
)


def sum_of(model: Vector, addend: NDArray[np.floating[Any]]) -> Vector:
    """Return a sum of two arrays of shape (p,), in float64 and rounded to float32 once."""
    return (model.astype(np.float64) + addend).astype(np.float32)


SERVER_OPTIMIZERS: Final = Registry(
    "server optimizer",
    "fedsim.aggregators",
    ("init", "step"),
    {
        "fedavg": "fedsim.learning.server_optimizers.averaging:FedAvg",
        "fedavgm": "fedsim.learning.server_optimizers.averaging:FedAvgM",
        "fedadagrad": "fedsim.learning.server_optimizers.adaptive:FedAdagrad",
        "fedadam": "fedsim.learning.server_optimizers.adaptive:FedAdam",
        "fedyogi": "fedsim.learning.server_optimizers.adaptive:FedYogi",
    },
    default="fedavg",
)
