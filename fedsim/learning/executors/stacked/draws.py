"""Draws inside a model (dropout): each slot has a generator of its own, as if its client were trained alone."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, fx
from torch._ops import OpOverload


def draws_at_random(node: fx.Node) -> bool:
    return isinstance(node.target, OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags


class SlotDraws:
    """Generators of the slots, and operations that draw from them slot by slot."""

    def __init__(self, slots: int) -> None:
        self._generators = [torch.Generator() for _ in range(slots)]
        self._active: Sequence[int] = range(slots)

    def seed(self, slot: int, seed: int) -> None:
        self._generators[slot].manual_seed(seed)

    def activate(self, slots: Sequence[int]) -> None:
        """Let only these slots draw from now on; the others get the numbers of the first of them."""
        self._active = slots

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Undo all draws, seeds and choices of slots at the end."""
        states, active = [one.get_state() for one in self._generators], self._active
        try:
            yield
        finally:
            self._active = active
            for generator, state in zip(self._generators, states, strict=True):
                generator.set_state(state)

    def drawing(self, operation: OpOverload) -> Callable[..., Tensor]:
        """Return an operation on arrays of all slots that draws each slot's part from its own generator."""
        takes_generator = any(argument.name == "generator" for argument in operation._schema.arguments)
        called = operation if takes_generator else _with_global_generator(operation)

        def draw(*args: Any, **kwargs: Any) -> Any:
            slots = len(self._generators)
            drawn: dict[int, Any] = {
                slot: called(*(_part(one, slot, slots) for one in args), **{**kwargs, "generator": generator})
                for slot, generator in enumerate(self._generators)
                if slot in self._active
            }
            spare = next(iter(drawn.values()))
            every = [drawn.get(slot, spare) for slot in range(slots)]
            if isinstance(spare, Tensor):
                return torch.stack(every)
            return tuple(torch.stack(parts) for parts in zip(*every, strict=True))

        return draw


def _with_global_generator(operation: OpOverload) -> Callable[..., Any]:
    """Give an operation that draws from torch's global generator one as an argument."""

    def call(*args: Any, generator: torch.Generator, **kwargs: Any) -> Any:
        used = torch.default_generator
        before = used.get_state()
        used.set_state(generator.get_state())
        try:
            return operation(*args, **kwargs)
        finally:
            generator.set_state(used.get_state())
            used.set_state(before)

    return call


def _part(argument: Any, slot: int, slots: int) -> Any:
    """Return one slot's part of an argument: of an array or of a shape whose first axis are the slots.

    Numbers are made contiguous, since torch draws in the order of the memory.
    """
    if isinstance(argument, Tensor) and argument.dim() and len(argument) == slots:
        return argument[slot].contiguous()
    if isinstance(argument, list | tuple) and argument and argument[0] == slots:
        return argument[1:]
    return argument
