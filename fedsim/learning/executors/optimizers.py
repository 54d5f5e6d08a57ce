"""Local steps on the parameters of some clients, one row each, with the state of each client's last training."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from fedsim.arrays import FloatArray, Vector
from fedsim.learning.executors.contracts import OptimizerState, TrainingSetup

_ALIGNED: Final = 32
"""Rows begin at multiples of this number of numbers, so that each takes the same vector instructions."""
_STATE: Final = {"adam": ("exp_avg", "exp_avg_sq"), "momentum": ("momentum_buffer",), "sgd": ()}


def rows_of(rows: int, count: int, device: torch.device | None = None) -> Tensor:
    """Return zeros of shape (rows, count) whose rows are aligned alike in memory."""
    return torch.zeros((rows, -(-count // _ALIGNED) * _ALIGNED), device=device)[:, :count]


class Optimizer:
    """SGD with momentum, or Adam, of torch, bit by bit for one row, without its overhead around each step.

    Each row has a state and a count of steps of its own, and what the algorithm adds to each gradient. Adam is the
    kernel of ``torch.optim.Adam`` with ``fused``; its class imports torch's compiler, which takes seconds.
    """

    def __init__(self, parameters: Tensor, setup: TrainingSetup, arrays: Sequence[Tensor] = ()) -> None:
        self._local, self._pull, self._parameters = (local := setup.local), setup.pull, parameters
        self._arrays, self._is_adam = arrays, local.optimizer == "adam"
        kind = "momentum" if local.momentum and not self._is_adam else local.optimizer
        self._state = {name: self._zeros() for name in _STATE[kind]}
        self._steps = torch.zeros(len(parameters), device=parameters.device)
        self._each = [list(one.unbind()) for one in (parameters, *self._state.values(), self._steps)]
        self._start = self._zeros() if self._pull else None
        self._offset = self._zeros() if setup.algorithm.corrects else None
        more = self._is_adam, local.momentum, local.weight_decay, local.clip_norm, self._pull
        self._is_plain = not any(more)
        # On a GPU a recorded step reads the rate from the device, where Adam's kernel takes float32.
        self._is_recorded = parameters.is_cuda
        exact = torch.float32 if self._is_recorded else torch.float64
        self._rate, self._on_device = 0.0, torch.zeros((), dtype=exact, device=parameters.device)

    def start(
        self, rows: Sequence[int], states: Sequence[OptimizerState], offsets: Sequence[Vector | None] = (None,)
    ) -> None:
        """Take over states and offsets of new clients, whose parameters are in their rows already."""
        self.set_rate(self._local.learning_rate)
        for name, values in self._state.items():
            for row, state in zip(rows, states, strict=True):
                values[row] = torch.from_numpy(state[name].copy()) if state else 0.0
        for row, state in zip(rows, states, strict=True) if self._is_adam else ():
            self._steps[row] = float(state["step"]) if state else 0.0
        if self._start is not None:
            self._start[rows] = self._parameters[rows]
        if self._offset is None and any(offset is not None for offset in offsets):
            self._offset = self._zeros()
        if self._offset is not None:
            for row, offset in zip(rows, offsets, strict=True):
                self._offset[row] = 0.0 if offset is None else torch.from_numpy(offset.copy())

    def set_rate(self, rate: float) -> None:
        self._rate = rate
        self._on_device.fill_(rate if self._is_adam else -rate)

    def state(self, row: int = 0) -> dict[str, Vector]:
        """Return a copy of a row's state under torch's names."""
        found = {name: values[row].cpu().numpy().copy() for name, values in self._state.items()}
        if self._is_adam:
            found["step"] = np.array(float(self._steps[row]), dtype=np.float32)
        return found

    def step(
        self,
        gradient: Tensor,
        waiting: Sequence[int] = (),
        rates: FloatArray | None = None,
        still: Sequence[slice] = (),
    ) -> None:
        """Change the parameters of all rows but those that wait, by one rate or by one for each row.

        Numbers in places without a gradient stay as they are, as under torch's optimisers, unless something pulls them.
        """
        arrays, kept = (self._parameters, *self._state.values()), list[tuple[Tensor, Any]]()
        if still and self._start is None and self._offset is None:
            kept += [(rows, (slice(None), place)) for rows in arrays for place in still]
        if waiting:
            kept += [(rows, waiting) for rows in (*arrays, self._steps)]
        before = [rows[place].clone() for rows, place in kept]
        self._change(gradient, rates)
        for (rows, place), values in zip(kept, before, strict=True):
            rows[place] = values

    def step_of_arrays(
        self, slopes: Sequence[Tensor], waiting: Sequence[int] = (), rates: FloatArray | None = None
    ) -> None:
        """Do a step by the gradients of the views ``arrays`` of the parameters, each of shape (rows, ...)."""
        if self._is_plain and self._offset is None and rates is None and not waiting:
            torch._foreach_add_(list(self._arrays), list(slopes), alpha=-self._rate)
        else:
            flat = torch.cat([one.reshape(len(self._parameters), -1) for one in slopes], dim=1)
            self.step(flat, waiting, rates)

    def _change(self, gradient: Tensor, rates: FloatArray | None) -> None:
        local, parameters = self._local, self._parameters
        if self._start is not None:
            gradient.add_(parameters - self._start, alpha=self._pull)
        if self._offset is not None:
            gradient.add_(self._offset)
        if local.clip_norm is not None:
            norms = torch.stack([one.norm() for one in gradient])
            gradient.mul_((local.clip_norm / norms).clamp_max(1.0)[:, None])
        if local.weight_decay:
            gradient.add_(parameters, alpha=local.weight_decay)
        if self._is_adam:
            self._adam(gradient, rates)
            return
        if local.momentum:
            # From zeros the first step gives the gradient itself, as torch's first step does.
            gradient = self._state["momentum_buffer"].mul_(local.momentum).add_(gradient)
        if rates is not None:
            parameters.sub_(gradient * torch.from_numpy(rates.astype(np.float32))[:, None])
        elif self._is_recorded:
            parameters.addcmul_(gradient, self._on_device)
        else:
            parameters.add_(gradient, alpha=-self._rate)

    def _adam(self, gradient: Tensor, rates: FloatArray | None) -> None:
        self._steps += 1
        every = [self._each[0], list(gradient.unbind()), *self._each[1:]]
        shares = [every] if rates is None else [[[one] for one in row] for row in zip(*every, strict=True)]
        for place, (weights, slopes, mean, square, step) in enumerate(shares):
            if rates is not None:
                self.set_rate(float(rates[place]))
            torch._fused_adam_(
                weights, slopes, mean, square, [], step,
                lr=self._on_device, beta1=0.9, beta2=0.999, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False,
            )  # fmt: skip

    def _zeros(self) -> Tensor:
        rows, count = self._parameters.shape
        return rows_of(rows, count, self._parameters.device)


def in_order(state: Mapping[str, Vector], count: int, order: Callable[[Vector], Vector]) -> dict[str, Vector]:
    """Return a state whose arrays of ``count`` numbers are in another order."""
    return {name: order(values) if values.shape == (count,) else values for name, values in state.items()}
