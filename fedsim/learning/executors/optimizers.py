"""A client's optimiser on one flat parameter, with the state of the client's last training."""

from collections.abc import Mapping
from typing import Final, Protocol

import torch
from torch import Tensor

from fedsim.arrays import Vector
from fedsim.learning.executors.contracts import OptimizerState
from fedsim.learning.local_training import LocalTraining
from fedsim.learning.models.flat_module import FlatModule

_MOMENTS: Final = ("exp_avg", "exp_avg_sq")


class Optimizer(Protocol):
    def start(self, state: OptimizerState) -> None:
        """Begin with a state, a fresh one if it is empty, and the learning rate of the settings."""
        ...

    def set_rate(self, rate: float) -> None: ...

    def step(self) -> None: ...

    def state(self) -> OptimizerState:
        """Return a copy of the state, under torch's names."""
        ...


class SGD:
    """The steps of ``torch.optim.SGD``, bit by bit, without its overhead around each step."""

    def __init__(self, flat: FlatModule, learning_rate: float, momentum: float) -> None:
        self._flat, self._rate, self._momentum, self._first_rate = flat, learning_rate, momentum, learning_rate
        self._weights = flat.parameters.data
        self._buffer = torch.empty_like(self._weights) if momentum else None
        self._moving = False
        # On a GPU a recorded step reads the rate from the device.
        self._down = torch.full((), -learning_rate, device=self._weights.device) if self._weights.is_cuda else None

    def start(self, state: OptimizerState) -> None:
        self.set_rate(self._first_rate)
        self._moving = bool(state)
        if self._buffer is not None and state:
            self._buffer.copy_(_inward(self._flat, state)["momentum_buffer"])
        elif self._buffer is not None and self._buffer.is_cuda:
            # The same numbers by the same operations at every step, so that a recorded step serves for the first too.
            self._buffer.zero_()
            self._moving = True

    def set_rate(self, rate: float) -> None:
        self._rate = rate
        if self._down is not None:
            self._down.fill_(-rate)

    def step(self) -> None:
        direction = self._flat.gradient
        if self._buffer is not None:
            if self._moving:
                self._buffer.mul_(self._momentum).add_(direction)
            else:
                self._buffer.copy_(direction)
                self._moving = True
            direction = self._buffer
        if self._down is None:
            self._weights.add_(direction, alpha=-self._rate)
        else:
            self._weights.addcmul_(direction, self._down)

    def state(self) -> OptimizerState:
        if self._buffer is None or not self._moving:
            return {}
        return _outward(self._flat, {"momentum_buffer": self._buffer})


class Adam:
    """The steps of ``torch.optim.Adam`` with ``fused``, bit by bit; its class imports torch's compiler (seconds)."""

    def __init__(self, flat: FlatModule, learning_rate: float) -> None:
        self._flat, self._first_rate, self._weights = flat, learning_rate, flat.parameters.data
        exact = torch.float32 if self._weights.is_cuda else torch.float64  # CUDA's kernel reads float32
        self._rate = torch.tensor(learning_rate, dtype=exact, device=self._weights.device)
        self._state = {name: torch.zeros_like(self._weights) for name in _MOMENTS}
        self._state["step"] = torch.zeros((), device=self._weights.device)

    def start(self, state: OptimizerState) -> None:
        self.set_rate(self._first_rate)
        before = _inward(self._flat, state)
        for name, values in self._state.items():
            values.copy_(before[name]) if state else values.zero_()

    def set_rate(self, rate: float) -> None:
        self._rate.fill_(rate)

    def step(self) -> None:
        self._state["step"] += 1
        mean, square, step = ([self._state[name]] for name in (*_MOMENTS, "step"))
        torch._fused_adam_(
            [self._weights], [self._flat.gradient], mean, square, [], step,
            lr=self._rate, beta1=0.9, beta2=0.999, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False,
        )  # fmt: skip

    def state(self) -> OptimizerState:
        return _outward(self._flat, self._state)


def optimizer_of(local: LocalTraining, flat: FlatModule) -> Optimizer:
    if local.optimizer == "adam":
        return Adam(flat, local.learning_rate)
    return SGD(flat, local.learning_rate, local.momentum)


def _inward(flat: FlatModule, state: OptimizerState) -> dict[str, Tensor]:
    """Return copies of arrays as tensors, those of p numbers in the order of the flat vector."""
    shape = (flat.layout.parameters,)
    return {
        name: torch.from_numpy(flat.inward(values) if values.shape == shape else values.copy())
        for name, values in state.items()
    }


def _outward(flat: FlatModule, state: Mapping[str, Tensor]) -> dict[str, Vector]:
    shape = (flat.layout.parameters,)
    arrays = {name: values.cpu().numpy() for name, values in state.items()}
    return {name: flat.outward(array) if array.shape == shape else array.copy() for name, array in arrays.items()}
