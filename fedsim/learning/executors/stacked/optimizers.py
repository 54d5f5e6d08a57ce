"""Steps of an optimiser on the parameters of all slots at once, by torch's formulas."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor

from fedsim.arrays import FloatArray, Vector
from fedsim.learning.local_training import LocalTraining

ROW: Final = 32
"""Rows of arrays begin at multiples of this number of numbers, so that a row takes the same vector instructions in
every slot.
"""


def rows_of(slots: int, count: int) -> Tensor:
    """Return zeros of shape (slots, count), in rows that begin at multiples of `ROW`."""
    return torch.zeros((slots, -(-count // ROW) * ROW))[:, :count]


class SlotOptimizer:
    """SGD with momentum, or Adam, with its own state and its own count of steps in each slot."""

    def __init__(self, parameters: Tensor, local: LocalTraining, pull: float, *, corrects: bool) -> None:
        names = {"adam": ("exp_avg", "exp_avg_sq"), "sgd": ("momentum_buffer",) if local.momentum else ()}
        slots, count = parameters.shape
        self._parameters, self._local, self._steps = parameters, local, np.zeros(slots)
        self._state = {name: rows_of(slots, count) for name in names[local.optimizer]}
        self._scratch = rows_of(slots, count)
        self._pull, self._start = pull, rows_of(slots, count) if pull else None
        self._offset = rows_of(slots, count) if corrects else None

    def start(
        self, slots: Sequence[int], states: Sequence[Mapping[str, Vector]], offsets: Sequence[Vector | None]
    ) -> None:
        """Take over states and offsets of new clients, whose parameters are in their slots already."""
        for name, rows in self._state.items():
            rows[slots] = 0.0
            for slot, state in zip(slots, states, strict=True):
                if state:
                    rows[slot] = torch.from_numpy(state[name].copy())
        self._steps[slots] = [float(state["step"]) if "step" in state else 0.0 for state in states]
        if self._start is not None:
            self._start[slots] = self._parameters[slots]
        if self._offset is not None:
            for slot, offset in zip(slots, offsets, strict=True):
                self._offset[slot] = 0.0 if offset is None else torch.from_numpy(offset.copy())

    def state(self, slot: int) -> dict[str, Vector]:
        """Return a slot's state under torch's names."""
        state = {name: rows[slot].numpy().copy() for name, rows in self._state.items()}
        if self._local.optimizer == "adam":
            state["step"] = np.array(self._steps[slot], dtype=np.float32)
        return state

    def step(self, gradient: Tensor, waiting: Sequence[int], rates: FloatArray | None = None) -> None:
        """Change the parameters of all slots but those that wait."""
        self._steps += 1.0
        if not waiting:
            self._change(gradient, rates)
            return
        self._steps[waiting] -= 1.0
        changing = (self._parameters, *self._state.values())
        kept = [rows[waiting] for rows in changing]
        self._change(gradient, rates)
        for rows, before in zip(changing, kept, strict=True):
            rows[waiting] = before

    def _change(self, gradient: Tensor, rates: FloatArray | None) -> None:
        local = self._local
        if self._start is not None:
            torch.sub(self._parameters, self._start, out=self._scratch)
            gradient.add_(self._scratch, alpha=self._pull)
        if self._offset is not None:
            gradient.add_(self._offset)
        if local.clip_norm is not None:
            gradient.mul_((local.clip_norm / gradient.norm(dim=1, keepdim=True)).clamp_max(1.0))
        if local.weight_decay:
            gradient.add_(self._parameters, alpha=local.weight_decay)
        if local.optimizer == "adam":
            self._adam(gradient, local.learning_rate if rates is None else rates)
            return
        if local.momentum:
            # From zeros the first step gives the gradient itself, as torch's first step does.
            gradient = self._state["momentum_buffer"].mul_(local.momentum).add_(gradient)
        if rates is None:
            self._parameters.add_(gradient, alpha=-local.learning_rate)
        else:
            self._parameters.sub_(torch.mul(gradient, self._column(rates), out=self._scratch))

    def _adam(
        self,
        gradient: Tensor,
        rate: float | FloatArray,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> None:
        mean, square, scratch = self._state["exp_avg"], self._state["exp_avg_sq"], self._scratch
        mean.lerp_(gradient, 1 - beta1)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        steps = np.maximum(self._steps, 1.0)
        torch.sqrt(square, out=scratch)
        scratch.mul_(self._column(1 / np.sqrt(1 - beta2**steps))).add_(epsilon)
        torch.div(mean, scratch, out=scratch)
        self._parameters.sub_(scratch.mul_(self._column(rate / (1 - beta1**steps))))

    def _column(self, values: FloatArray) -> Tensor:
        return torch.from_numpy(values.astype(np.float32))[:, None]
