"""Draws inside a model (dropout): each slot has a generator of its own, as if its client were trained alone."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload


class SlotDraws:
    """The state of torch's generator in each slot, and operations that draw slot by slot.

    Slots that are not ``active`` get the numbers of the first that is.
    """

    def __init__(self, slots: int) -> None:
        self._slots, self._states = slots, dict[int, Tensor]()
        self.active: Sequence[int] = range(slots)

    def begin(self, seeds: Sequence[int]) -> None:
        """Let the first slots begin with these seeds."""
        self.active = range(len(seeds))
        self._states = {slot: torch.Generator().manual_seed(seed).get_state() for slot, seed in enumerate(seeds)}

    def drawing(self, operation: OpOverload) -> Callable[..., Any]:
        """Return an operation on arrays of all slots that draws each slot's part from its own state."""

        def draw(*args: Any, **kwargs: Any) -> Any:
            slots, generator, drawn = self._slots, torch.default_generator, dict[int, Any]()
            before = generator.get_state()
            for slot in self.active:
                generator.set_state(self._states[slot])
                drawn[slot] = operation(*(_part(one, slot, slots) for one in args), **kwargs)
                self._states[slot] = generator.get_state()
            generator.set_state(before)
            spare = drawn[self.active[0]]
            every = [drawn.get(slot, spare) for slot in range(slots)]
            if isinstance(spare, Tensor):
                return torch.stack(every)
            return tuple(torch.stack(parts) for parts in zip(*every, strict=True))

        return draw


def _part(argument: Any, slot: int, slots: int) -> Any:
    """Return one slot's part of an argument: of an array or of a shape whose first axis are the slots.

    Numbers are made contiguous, since torch draws in the order of the memory.
    """
    if isinstance(argument, Tensor) and argument.dim() and len(argument) == slots:
        return argument[slot].contiguous()
    if isinstance(argument, list | tuple) and argument and argument[0] == slots:
        return argument[1:]
    return argument
