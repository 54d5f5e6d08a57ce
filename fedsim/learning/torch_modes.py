"""Modes of torch that belong to a thread or to the process: set around all that fedsim computes, and put back.

A caller's autocast, default type, default device, grad or inference mode, or choice of kernels would change numbers,
and the store would give them to later runs.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from threading import Lock
from typing import Any, Final

_LOCK: Final = Lock()
_OF_PROCESS: Final[list[Callable[[], object]]] = []
"""What puts the modes of the process back, once the last of the threads that compute is done."""
_ATTRIBUTES: Final[dict[str, dict[str, Any]]] = {
    "cudnn": {"benchmark": False, "deterministic": True, "allow_tf32": False},
    "mkldnn": {"enabled": True},
    "opt_einsum": {"enabled": True, "strategy": "auto"},
}
"""Values of torch's backends, by backend and name."""
_ROUNDING: Final = (
    "mkldnn.matmul",
    "mkldnn.conv",
    "mkldnn.rnn",
    "mkldnn",
    "cuda.matmul",
    "cudnn.conv",
    "cudnn.rnn",
    "",
)
"""Parts of torch's backends that may round float32 inputs, from torch 2.9 on."""
_EXACT: Final = ("none", "ieee")
_ATTENTION: Final = ("flash", "mem_efficient", "math", "cudnn")
"""Kernels of attention, all of which are allowed by default."""

_inside = 0


def loaded_torch() -> Any:
    """Return torch, or None as long as it is not imported."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "inference_mode") else None


@contextmanager
def own_modes() -> Iterator[None]:
    """Compute in float32 on the CPU with gradients, whatever the caller's modes; these are put back at the end."""
    torch = loaded_torch()
    if torch is None:
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
        if not sys.float_info.min / 2:  # numbers near 0 are 0
            torch.set_flush_denormal(False)
            of_thread.callback(torch.set_flush_denormal, True)
        yield


@contextmanager
def fast_modes() -> Iterator[None]:
    """Allow kernels that are chosen by a trial, add in any order or round inputs; within `own_modes`."""
    import torch

    cudnn = torch.backends.cudnn
    cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32 = True, False, True
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision("highest")
        cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32 = False, True, False


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
    _switch(torch.get_default_dtype(), torch.float32, torch.set_default_dtype)
    if torch.are_deterministic_algorithms_enabled():
        # On a CPU they give the same numbers, and refuse layers that have one algorithm alone.
        warns = torch.is_deterministic_algorithms_warn_only_enabled()
        torch.use_deterministic_algorithms(False)
        _OF_PROCESS.append(lambda: torch.use_deterministic_algorithms(True, warn_only=warns))
    _round_nothing(torch)
    for place, values in _ATTRIBUTES.items():
        for name, value in values.items():
            with suppress(RuntimeError):
                owner = _backend(torch, place)
                _switch(getattr(owner, name, value), value, partial(setattr, owner, name))
    kernels, layers = torch.backends.cuda, torch.backends.mha
    for name in _ATTENTION:
        if hasattr(kernels, f"enable_{name}_sdp"):
            _switch(getattr(kernels, f"{name}_sdp_enabled")(), True, getattr(kernels, f"enable_{name}_sdp"))
    _switch(layers.get_fastpath_enabled(), True, layers.set_fastpath_enabled)


def _round_nothing(torch: Any) -> None:
    """Let products and convolutions take float32 as it is."""
    parts = [one for one in (_backend(torch, place) for place in _ROUNDING) if hasattr(one, "fp32_precision")]
    before = [(one, one.fp32_precision) for one in parts]

    def put_back() -> None:
        for one, precision in before:
            if one.fp32_precision != precision:
                one.fp32_precision = precision

    _OF_PROCESS.append(put_back)  # after those below, which change the parts too
    with suppress(RuntimeError):  # of a caller who has set the precision of single parts
        _switch(torch.get_float32_matmul_precision(), "highest", torch.set_float32_matmul_precision)
    for one in parts:
        if one.fp32_precision not in _EXACT:
            one.fp32_precision = "ieee"


def _backend(torch: Any, place: str) -> Any:
    found = torch.backends
    for step in filter(None, place.split(".")):
        found = getattr(found, step, None)
    return found


def _switch(found: object, wanted: object, change: Callable[[Any], object]) -> None:
    """Set a mode that is another one, and put it back with those of the process."""
    if found != wanted:
        change(wanted)
        _OF_PROCESS.append(partial(change, found))
