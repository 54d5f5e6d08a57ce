"""A traced list of operations as a CUDA graph: recorded once, then started by one call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

Run = Callable[..., Sequence[Tensor]]
"""A function of arrays in a row."""

_WARM_UPS: Final = 3
"""Runs before a recording, in which libraries choose kernels and take memory."""


@dataclass(frozen=True)
class Replay:
    """Copies arguments to fixed places, runs the recording, and copies results out."""

    start: Callable[[], None]
    lasting: int
    given: Sequence[Tensor]
    found: Sequence[Tensor]
    owners: tuple[object, ...] = ()

    def __call__(self, *arguments: Tensor) -> Sequence[Tensor]:
        for place, argument in zip(self.given, arguments[self.lasting :], strict=True):
            place.copy_(argument)
        self.start()
        return [one.clone() for one in self.found]


def recorded(run: Run, lasting: Sequence[Tensor], example: Sequence[Tensor]) -> Run:
    """Return a function as a CUDA graph, or the function itself where CUDA refuses to record it.

    Both call the same kernels, so that results do not depend on it.
    """
    device = example[0].device
    given = [one.clone() for one in example]
    # The arguments are written in one stream and read in another, so that each waits for the other.
    with torch.cuda.device(device):
        side, now = torch.cuda.Stream(device), torch.cuda.current_stream(device)  # type: ignore[no-untyped-call]
        side.wait_stream(now)
        with torch.cuda.stream(side):
            for _ in range(_WARM_UPS):
                run(*lasting, *given)
        now.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
                found = run(*lasting, *given)
        except RuntimeError:
            return run
    return Replay(graph.replay, len(lasting), given, found, (run, lasting))
