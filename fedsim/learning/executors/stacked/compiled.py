"""The executor "stacked-compiled": steps compiled by torch's inductor."""

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, _inductor, fx
from torch._inductor import cpp_builder
from torch._inductor.exc import InvalidCxxCompiler

from fedsim.errors import FedsimError
from fedsim.learning.executors.contracts import TrainingSetup, check_cpu, check_mapped
from fedsim.learning.executors.stacked import passes
from fedsim.learning.executors.stacked.executor import StackedExecutor
from fedsim.learning.executors.stacked.replay import Run

_ALLOWED: Final = "allowed: the executor 'stacked'"


class StackedCompiledExecutor(StackedExecutor):
    """Trains as `StackedExecutor`, with each step compiled to machine code; evaluations are not compiled.

    A step is compiled once for each size of a batch and number of slots, which takes seconds.

    Parameters
    ----------
    setup : TrainingSetup
    device : ``"cpu"``

    Raises
    ------
    FedsimError
        If torch finds no C++ compiler that works or cannot compile the step, the model draws random numbers, or the
        device is another one; and as `StackedExecutor`.
    """

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        check_cpu("stacked-compiled", device)
        check_mapped("stacked-compiled", setup.algorithm, setup.task)
        version = compiler_version()
        super().__init__(setup, device, compiled)
        with self._computing():
            if not self._training(self._few).alike():
                raise FedsimError(f"learning.model: compiled, results depend on the place of a client; {_ALLOWED}")
        self.fingerprint = f"{self.fingerprint}:compiled:{version}"


def compiler_version() -> str:
    """Return the version of the C++ compiler that torch finds, as one line."""
    try:
        return cpp_builder.get_compiler_version_info(cpp_builder.get_cpp_compiler()).partition("\n")[0]
    except InvalidCxxCompiler as error:
        raise FedsimError(
            "executor: 'stacked-compiled' needs a C++ compiler, and torch finds none that works; allowed: one "
            "named g++ or named by the environment variable CXX, or the executor 'stacked'"
        ) from error


def compiled(graph: fx.GraphModule, given: Sequence[Tensor]) -> Run:
    for node in graph.graph.nodes:
        if node.target is passes.bmm_alike:
            node.target = torch.ops.fedsim.bmm_alike.default
    graph.recompile()
    try:
        # Worker processes for the compiler would outlive it.
        run: Run = _inductor.compile(graph, list(given), {"compile_threads": 1})
    except RuntimeError as error:
        raise FedsimError(
            f"learning.model: torch cannot compile a step of this module ({error}); {_ALLOWED}"
        ) from error
    return run


@torch.library.custom_op("fedsim::bmm_alike", mutates_args=())
def _bmm_alike(first: Tensor, second: Tensor) -> Tensor:
    """Call `passes.bmm_alike` with a memory layout that the compiler must not change."""
    return passes.bmm_alike(first, second)


@_bmm_alike.register_fake
def _(first: Tensor, second: Tensor) -> Tensor:
    return first.new_empty((len(first), first.shape[1], second.shape[2]))
