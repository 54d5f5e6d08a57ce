"""A digest of a module of the user's own, and a trial of it before a run begins."""

import copy
import hashlib
import inspect
import io
import itertools
import pickle
import weakref
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import torch
from torch import Tensor, nn

from fedsim.answers import FAILURES, attributed, failed
from fedsim.code_digest import code_digest, is_users
from fedsim.errors import FedsimError, PartError
from fedsim.learning.data.shapes import Shape
from fedsim.learning.models.inputs import blank


def content_of(value: nn.Module | Callable[..., Any]) -> str:
    """Return a digest of a module, or of the class or function that makes one; of what cannot be pickled another."""
    told = io.BytesIO()
    try:
        _Telling(told, protocol=5).dump(value)
    except Exception:  # whatever a class of the user's raises
        told.write(uuid4().bytes)
    return hashlib.blake2b(told.getvalue(), digest_size=16).hexdigest()


class _Telling(pickle._Pickler):
    """Pickles values for a digest: code by its text, tensors by their numbers."""

    def reducer_override(self, value: Any) -> Any:
        if value is _told:
            return NotImplemented
        if isinstance(value, set | frozenset):  # its order changes from process to process
            return _told, (sorted(value, key=repr),)
        if isinstance(value, nn.Module):
            return _told, (type(value),), vars(value)
        if isinstance(value, Tensor) and value.layout is torch.strided:
            numbers = value.detach().cpu().resolve_conj().resolve_neg().contiguous().flatten()
            kind = f"{type(value).__name__} {value.dtype} {tuple(value.shape)} {value.requires_grad}"
            return _told, (kind, numbers.view(torch.uint8).numpy().tobytes())
        if inspect.isclass(value) or inspect.isfunction(value):
            users = value.__module__ == "__main__" or is_users(value.__module__)
            cells = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
            code = code_digest(value).text if users else ""
            return _told, (f"{value.__module__}:{value.__qualname__}", code, cells)
        return (_told, (value(),)) if isinstance(value, weakref.ref) else NotImplemented

    def memoize(self, obj: Any) -> None:
        """Write equal texts alike, whether they are one object or several."""
        if type(obj) not in (str, bytes, tuple):
            super().memoize(obj)  # type: ignore[misc]


def _told(*_: Any) -> None:
    """Stand for what is pickled."""


def check_scores(module: nn.Module, name: str, shape: Shape, outputs: int) -> tuple[str, ...]:
    """Refuse a module that fails on a blank sample, has other scores than the task asks for, or nothing to train.

    Return the names of the arrays of its state in the order in which the layers that own them begin. Arrays of a layer
    that does not begin by itself come with the layer around it.
    """
    found, allowed = unusable(module)
    if found:
        raise PartError(f"model {name}: {found}", f"allowed: {allowed}")
    if not any(one.requires_grad for one in module.parameters()):
        raise PartError(f"model {name} has no parameter that is trained", "allowed: one with requires_grad at least")
    try:
        tried = copy.deepcopy(module).eval()
    except Exception as error:
        fault = f"model {name} cannot be copied ({type(error).__name__}: {error})"
        raise PartError(fault, "allowed: attributes that can be copied, so that each client begins alike") from error
    begun: dict[int, int] = {}
    count = itertools.count()

    def begins(part: nn.Module, _: object) -> None:
        begun[id(part)] = next(count)

    try:
        with torch.no_grad(), nn.modules.module.register_module_forward_pre_hook(begins):
            scores = tried(blank(shape))
    except FedsimError:
        raise
    except FAILURES as failure:
        raise attributed(failure) or failed(f"model {name}", "forward", failure) from failure
    allowed = f"allowed: a tensor of shape (n, {outputs}) or (n, ..., {outputs}) for n samples, as the task asks for"
    if not isinstance(scores, Tensor):
        raise PartError(f"model {name} gave {type(scores).__name__}", allowed)
    if scores.shape[:1] != (1,) or (scores.shape[-1] != outputs and outputs > 1):
        raise PartError(f"model {name} gave scores of shape {tuple(scores.shape)} for one sample", allowed)

    return tuple(sorted(tried.state_dict(), key=lambda array: _place(array, tried, begun)))


def _place(array: str, module: nn.Module, begun: dict[int, int]) -> int:
    """Return when the layer that owns an array, or the nearest one around it, begins; 0 if none does."""
    owner = array
    while owner:
        owner = owner.rpartition(".")[0]
        if (number := begun.get(id(module.get_submodule(owner)))) is not None:
            return number
    return 0


def unusable(module: nn.Module) -> tuple[str, str]:
    """Return why a module cannot be trained by fedsim, and what is allowed instead; nothing if it can."""
    if isinstance(module, torch.jit.ScriptModule):
        return "it is a TorchScript module", "the torch.nn.Module of which it was made"
    for name, part in module.named_modules():
        layer = f"layer {name} ({type(part).__name__})" if name else f"layer {type(part).__name__}"
        tensors = (*part.parameters(recurse=False), *part.buffers(recurse=False))
        if any(isinstance(one, nn.UninitializedParameter | nn.UninitializedBuffer) for one in tensors):
            return f"{layer} has no sizes yet", "layers with sizes, or a module that has been called once"
        if any(one.is_meta for one in tensors):
            return f"{layer} is on the device meta, without numbers", "a module on the CPU"
    return "", ""
