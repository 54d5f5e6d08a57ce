"""Adaptive server optimisers: FedAdagrad, FedAdam and FedYogi.

Reddi et al., "Adaptive federated optimization", ICLR 2021, Algorithm 2. With the update D, which is minus the
pseudo-gradient, for each parameter::

    m <- beta_1 m + (1 - beta_1) D
    v <- v + D^2                                     FedAdagrad
    v <- beta_2 v + (1 - beta_2) D^2                 FedAdam
    v <- v - (1 - beta_2) D^2 sign(v - D^2)          FedYogi
    x <- x + learning_rate m / (sqrt(v) + tau)

m starts at 0 and v at ``initial``, ``tau^2`` by default: the paper asks for at least that. The paper has no correction
of the bias towards these values, and neither is there one by default. With ``bias_correction`` m is divided by
``1 - beta_1^t`` and v by ``1 - beta_2^t`` in the last line, t being the number of the step from 1 (Kingma and Ba,
"Adam", ICLR 2015, whose v starts at 0). A sum has no bias: FedAdagrad's v is not divided.

Numbers are computed in float64 and rounded to float32.
"""

from abc import abstractmethod
from typing import Annotated

import numpy as np
from pydantic import Field

from fedsim.arrays import FloatArray, Vector, blocks
from fedsim.learning.server_optimizers.contracts import ServerOptimizer, ServerState, sum_of


class _Adaptive(ServerOptimizer):
    """A step for each parameter by the running mean of its squared updates."""

    learning_rate: Annotated[float, Field(gt=0)] = 0.01
    beta_1: Annotated[float, Field(ge=0, lt=1)] = 0.9
    tau: Annotated[float, Field(gt=0)] = 1e-3
    initial: Annotated[float, Field(ge=0)] | None = None
    bias_correction: bool = False

    def init(self, parameters: int) -> ServerState:
        first = self.tau**2 if self.initial is None else self.initial
        return {
            "mean": np.zeros(parameters, dtype=np.float32),
            "squares": np.full(parameters, first, dtype=np.float32),
            "steps": np.zeros(1, dtype=np.int64),
        }

    def step(self, model: Vector, update: Vector, state: ServerState) -> tuple[Vector, ServerState]:
        steps = state["steps"] + 1
        count = int(steps[0]) if self.bias_correction else None
        moved, mean, squares = (np.empty(model.shape, dtype=np.float32) for _ in range(3))
        for at in blocks(model.size):
            before = (state["mean"][at], state["squares"][at])
            moved[at], mean[at], squares[at] = self._moved(model[at], update[at], *before, count)
        return moved, {"mean": mean, "squares": squares, "steps": steps}

    def _moved(
        self, model: Vector, update: Vector, mean: Vector, squares: Vector, count: int | None
    ) -> tuple[Vector, FloatArray, FloatArray]:
        """Return the next model, m and v, each of the shape of the arguments; a count of steps corrects the bias."""
        change = update.astype(np.float64)
        next_mean = self.beta_1 * mean.astype(np.float64) + (1 - self.beta_1) * change
        next_squares = self._squares(squares.astype(np.float64), change**2)
        first, second = next_mean, next_squares
        if count is not None:
            first, second = first / (1 - self.beta_1**count), second / self._lacking(count)
        return sum_of(model, self.learning_rate * first / (np.sqrt(second) + self.tau)), next_mean, next_squares

    @abstractmethod
    def _squares(self, before: FloatArray, square: FloatArray) -> FloatArray:
        """Return the next v from the last one and the squared update."""

    def _lacking(self, steps: int) -> float:
        return 1.0


class FedAdagrad(_Adaptive):
    """Adagrad on the server: ``v <- v + update^2``, ``x <- x + learning_rate m / (sqrt(v) + tau)``.

    Reddi et al., "Adaptive federated optimization", ICLR 2021, Algorithm 2. m is the update itself with beta_1 of 0,
    the default.

    Attributes
    ----------
    learning_rate : float > 0
        The paper searches it for each task; the default is fedsim's.
    beta_1 : float in [0, 1)
        Of the running mean m of updates, which starts at 0.
    tau : float > 0
    initial : float >= 0, optional
        What v starts at; ``tau^2`` by default.
    bias_correction : bool
        Whether m is divided by ``1 - beta_1^t`` at step t; not so in the paper.

    Examples
    --------
    >>> optimizer = FedAdagrad(learning_rate=0.125, tau=1e-9, initial=0.0)
    >>> model, update = np.zeros(2, dtype=np.float32), np.array([3.0, -4.0], dtype=np.float32)
    >>> first, state = optimizer.step(model, update, optimizer.init(2))
    >>> second, state = optimizer.step(first, update, state)
    >>> first.tolist(), state["squares"].tolist()  # 0.125 u / |u|, and twice the squares
    ([0.125, -0.125], [18.0, 32.0])
    """

    beta_1: Annotated[float, Field(ge=0, lt=1)] = 0.0

    def _squares(self, before: FloatArray, square: FloatArray) -> FloatArray:
        return before + square


class _Decaying(_Adaptive):
    """A rule whose squares forget."""

    beta_2: Annotated[float, Field(ge=0, lt=1)] = 0.99

    def _lacking(self, steps: int) -> float:
        return 1.0 - self.beta_2**steps


class FedAdam(_Decaying):
    """Adam on the server: ``v <- beta_2 v + (1 - beta_2) update^2``, ``x <- x + learning_rate m / (sqrt(v) + tau)``.

    Reddi et al., "Adaptive federated optimization", ICLR 2021, Algorithm 2.

    Attributes
    ----------
    learning_rate : float > 0
        The paper searches it for each task; the default is fedsim's.
    beta_1, beta_2 : floats in [0, 1)
        Of the running means of updates and of their squares.
    tau : float > 0
    initial : float >= 0, optional
        What v starts at; ``tau^2`` by default. m starts at 0.
    bias_correction : bool
        Whether m and v are divided by ``1 - beta^t`` at step t; not so in the paper.

    Examples
    --------
    >>> optimizer = FedAdam(learning_rate=0.125, beta_1=0.0, beta_2=0.75, tau=1e-9, initial=0.0)
    >>> model, update = np.zeros(2, dtype=np.float32), np.array([4.0, -0.25], dtype=np.float32)
    >>> optimizer.step(model, update, optimizer.init(2))[0].tolist()  # 0.125 u / sqrt(u^2 / 4)
    [0.25, -0.25]
    """

    def _squares(self, before: FloatArray, square: FloatArray) -> FloatArray:
        return self.beta_2 * before + (1 - self.beta_2) * square


class FedYogi(_Decaying):
    """Yogi on the server: ``v <- v - (1 - beta_2) update^2 sign(v - update^2)``, the step being FedAdam's.

    Reddi et al., "Adaptive federated optimization", ICLR 2021, Algorithm 2. FedScale's Yogi is ``learning_rate =
    0.003, tau = 1e-8, initial = 1e-8``, for parameters.

    Attributes
    ----------
    learning_rate : float > 0
        The paper searches it for each task; the default is fedsim's.
    beta_1, beta_2 : floats in [0, 1)
    tau : float > 0
    initial : float >= 0, optional
        What v starts at; ``tau^2`` by default. m starts at 0.
    bias_correction : bool
        Whether m and v are divided by ``1 - beta^t`` at step t; not so in the paper.

    Examples
    --------
    >>> model, update = np.zeros(1, dtype=np.float32), np.full(1, 0.5, dtype=np.float32)
    >>> yogi, adam = FedYogi(beta_2=0.5, initial=1.0), FedAdam(beta_2=0.5, initial=1.0)
    >>> states = [one.step(model, update, one.init(1))[1] for one in (yogi, adam)]
    >>> [float(state["squares"][0]) for state in states]  # 1 - 0.5 * 0.25, and 0.5 * 1 + 0.5 * 0.25
    [0.875, 0.625]
    """

    def _squares(self, before: FloatArray, square: FloatArray) -> FloatArray:
        return before - (1 - self.beta_2) * square * np.sign(before - square)
