"""Draws inside a model (dropout) on a batch of several clients: each client's samples have their own generator."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class DrawsOfClients(TorchDispatchMode):
    """While it is entered, numbers that are drawn for the samples of a batch come from their clients' generators."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.refused = False
        self._generators: list[torch.Generator] = []
        self._sizes: list[int] = []

    def begin(self, seeds: Sequence[int], sizes: Sequence[int]) -> None:
        """Begin a batch."""
        while len(self._generators) < len(seeds):
            self._generators.append(torch.Generator())
        for generator, seed in zip(self._generators, seeds, strict=False):
            generator.manual_seed(seed)
        self._sizes = list(sizes)

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Do an operation."""
        if torch.Tag.nondeterministic_seeded not in operation.tags:
            return operation(*args, **(kwargs or {}))
        of_samples = args and isinstance(args[0], Tensor) and args[0].dim() and len(args[0]) == sum(self._sizes)
        fills = operation._schema.is_mutable and any(one.name == "generator" for one in operation._schema.arguments)
        if not (of_samples and fills) or kwargs or any(isinstance(one, Tensor) for one in args[1:]):
            self.refused = True
            return operation(*args, **(kwargs or {}))
        numbers: Tensor = args[0]
        for part, generator in zip(torch.split(numbers, self._sizes), self._generators, strict=False):
            operation(part, *args[1:], generator=generator)
        return numbers
