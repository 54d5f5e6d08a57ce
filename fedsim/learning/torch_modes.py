"""Modes of torch that belong to a thread or to the process: set around all that fedsim computes, and put back.

A caller's autocast, default type, default device, grad or inference mode would change numbers, and the store would give
them to later runs.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any, Final

_LOCK: Final = Lock()
_OF_PROCESS: Final[list[Callable[[], None]]] = []
"""What puts the modes of the process back, once the last of the threads that compute is done."""

_inside = 0


@contextmanager
def own_modes() -> Iterator[None]:
    """Compute in float32 on the CPU with gradients, whatever the caller's modes; these are put back at the end."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "inference_mode"):  # as long as it is being imported
        yield
        return
    with _of_the_process(torch), ExitStack() as of_thread:
        if torch.is_inference_mode_enabled():
            of_thread.enter_context(torch.inference_mode(mode=False))
        if not torch.is_grad_enabled():
            of_thread.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                torch.set_autocast_enabled(device, False)
                of_thread.callback(torch.set_autocast_enabled, device, True)
        if torch.get_default_device().type != "cpu":
            of_thread.enter_context(torch.device("cpu"))
        yield


@contextmanager
def fast_modes() -> Iterator[None]:
    """Allow kernels that are chosen by a trial, add in any order or round inputs; within `own_modes`."""
    import torch

    cudnn, before = torch.backends.cudnn, torch.get_float32_matmul_precision()
    now = cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32
    cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32 = True, False, True
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
        cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32 = now


@contextmanager
def _of_the_process(torch: Any) -> Iterator[None]:
    """Set modes that all threads share: by the first that comes in, until the last one has left."""
    global _inside  # noqa: PLW0603 - the modes are globals of torch
    with _LOCK:
        _inside += 1
        if _inside == 1:
            _set(torch)
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if not _inside:
                while _OF_PROCESS:
                    _OF_PROCESS.pop()()


def _set(torch: Any) -> None:
    default, precision = torch.get_default_dtype(), torch.get_float32_matmul_precision()
    if default != torch.float32:
        torch.set_default_dtype(torch.float32)
        _OF_PROCESS.append(lambda: torch.set_default_dtype(default))
    if precision != "highest":
        torch.set_float32_matmul_precision("highest")
        _OF_PROCESS.append(lambda: torch.set_float32_matmul_precision(precision))
    if torch.are_deterministic_algorithms_enabled():
        # On a CPU they give the same numbers, and refuse layers that have one algorithm alone.
        warns = torch.is_deterministic_algorithms_warn_only_enabled()
        torch.use_deterministic_algorithms(False)
        _OF_PROCESS.append(lambda: torch.use_deterministic_algorithms(True, warn_only=warns))
    cudnn = torch.backends.cudnn
    now, exact = (cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32), (False, True, False)
    if now != exact:
        cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32 = exact

        def put_back() -> None:
            cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32 = now

        _OF_PROCESS.append(put_back)
