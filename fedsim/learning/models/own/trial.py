"""A digest of a module of the user's own, and a trial of it before a run begins."""

import copy
import itertools
from types import FunctionType
from typing import Any, Final

import torch
from torch import Tensor, nn

from fedsim.answers import FAILURES, attributed, failed
from fedsim.code_digest import ContentPickler, content_digest, stand_in
from fedsim.errors import FedsimError, PartError
from fedsim.learning.data.shapes import Shape
from fedsim.learning.models.inputs import blank

_LIBRARIES: Final = ("fedsim", "torch", "torchvision")
_HOOKS: Final = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_DRAWING: Final = (nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)
"""Layers of torch's that draw in evaluations too, which no seed is set for without a sandbox."""


def content_of(value: Any) -> str:
    """Return a digest of a module, of the class or function that makes one, or of one's attribute."""
    return content_digest(value, _ModulePickler)


class _ModulePickler(ContentPickler):
    """Pickles modules by their attributes, and tensors by their numbers."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, nn.Module):
            return stand_in, (type(value),), vars(value)
        if isinstance(value, Tensor) and value.layout is torch.strided:
            numbers = value.detach().cpu().resolve_conj().resolve_neg().contiguous().flatten()
            kind = f"{type(value).__name__} {value.dtype} {tuple(value.shape)} {value.requires_grad}"
            return stand_in, (kind, numbers.view(torch.uint8).numpy().tobytes())
        return super().reducer_override(value)


def is_own_layer(module: nn.Module) -> bool:
    """Return whether code of a user's runs with a layer, which may have a state beside its numbers."""
    own = vars(module)
    hooks = (hook for name in _HOOKS for hook in own[name].values())
    return (
        not _is_known(type(module))
        or isinstance(module, _DRAWING)
        or "forward" in own
        or not all(map(_is_known, hooks))
        or any(one._backward_hooks or one._post_accumulate_grad_hooks for one in module.parameters(recurse=False))
    )


def _is_known(code: Any) -> bool:
    """Return whether a class or a function is of a library whose layers have no state beside their numbers."""
    home: str | None = code.__module__ if isinstance(code, type | FunctionType) else None
    return home is not None and home.partition(".")[0] in _LIBRARIES


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
        # A pass leaves nothing behind in layers of libraries, which take long to copy.
        tried = (copy.deepcopy(module) if any(map(is_own_layer, module.modules())) else module).eval()
    except Exception as error:
        fault = f"model {name} cannot be copied ({type(error).__name__}: {error})"
        raise PartError(fault, "allowed: attributes that can be copied, so that each client begins alike") from error
    begun: dict[int, int] = {}
    count = itertools.count()

    def begins(part: nn.Module, _: object) -> None:
        begun[id(part)] = next(count)

    kind, sample = torch.get_default_dtype(), blank(shape)
    try:
        with torch.no_grad(), nn.modules.module.register_module_forward_pre_hook(begins):
            scores = tried(sample)
    except FedsimError:
        raise
    except FAILURES as failure:
        known = attributed(failure) or failed(f"model {name}", "forward", failure)
        raise PartError(f"{known.what}; {_given(sample, module)}", known.hint) from failure
    if (other := torch.get_default_dtype()) != kind:
        torch.set_default_dtype(kind)
        raise PartError(f"model {name}: forward sets the default type of torch to {other}", "allowed: to leave it")
    allowed = f"allowed: a tensor of shape (n, {outputs}) or (n, ..., {outputs}) for n samples, as the task asks for"
    if not isinstance(scores, Tensor):
        raise PartError(f"model {name} gave {type(scores).__name__}", allowed)
    if scores.shape[:1] != (1,) or (scores.shape[-1] != outputs and outputs > 1):
        raise PartError(f"model {name} gave scores of shape {tuple(scores.shape)} for one sample", allowed)

    return tuple(sorted(tried.state_dict(), key=lambda array: _place(array, tried, begun)))


def _given(sample: Tensor, module: nn.Module) -> str:
    """Return what a sample is and, where types of numbers may not go together, how they would."""
    kinds = [str(one).removeprefix("torch.") for one in (sample.dtype, *(part.dtype for part in module.parameters()))]
    told = f"its sample was {kinds[0]} of shape {tuple(sample.shape)}"
    if not sample.is_floating_point():
        return f"{told}, as tokens are; numbers are x.astype('float32')"
    return f"{told}; its own numbers become so by model.float()" if "float64" in kinds else told


def _place(array: str, module: nn.Module, begun: dict[int, int]) -> int:
    """Return when the layer that owns an array, or the nearest one around it, begins; 0 if none does."""
    owner, layers = array, dict(module.named_modules(remove_duplicate=False))
    while owner:
        owner = owner.rpartition(".")[0]
        if owner not in layers:
            fault = f"model {type(module).__name__}: state_dict has an array {array}, and there is no layer {owner}"
            raise PartError(fault, "allowed: a state_dict with the names of the module's parameters and buffers")
        if (number := begun.get(id(layers[owner]))) is not None:
            return number
    return 0


def unusable(module: nn.Module) -> tuple[str, str]:
    """Return why a module cannot be trained by fedsim, and what is allowed instead; nothing if it can."""
    for name, part in module.named_modules():
        layer = f"layer {name} ({type(part).__name__})" if name else f"layer {type(part).__name__}"
        if isinstance(part, torch.jit.ScriptModule):
            return f"{layer if name else 'it'} is a TorchScript module", "the torch.nn.Module of which it was made"
        tensors = (*part.parameters(recurse=False), *part.buffers(recurse=False))
        if any(isinstance(one, nn.UninitializedParameter | nn.UninitializedBuffer) for one in tensors):
            return f"{layer} has no sizes yet", "layers with sizes, or a module that has been called once"
        if any(one.is_meta for one in tensors):
            return f"{layer} is on the device meta, without numbers", "a module on the CPU"
        other = {one.dtype for one in tensors if one.requires_grad} - {torch.float32, torch.float64}
        if other:
            kind = str(other.pop()).removeprefix("torch.")
            return f"{layer} trains numbers of {kind}", "float32, and of complex numbers their two parts"
    if pair := _in_one_memory(module):
        return f"{pair[0]} and {pair[1]} lie in the same memory", "one nn.Parameter for both, or a copy (clone)"
    return "", ""


def _in_one_memory(module: nn.Module) -> tuple[str, str] | None:
    """Return the names of a trained parameter and of another array in its memory, whose numbers would part."""
    found = dict[int, tuple[int, int, bool, str]]()
    for place, part in module.named_modules():
        attributes = vars(part).items() if not type(part).__module__.startswith("torch.") else ()
        for name, one in (*part._parameters.items(), *part._buffers.items(), *attributes):
            if isinstance(one, Tensor) and one.layout is torch.strided and one.numel():
                steps = sum((size - 1) * stride for size, stride in zip(one.shape, one.stride(), strict=True))
                start, trained = one.data_ptr(), isinstance(one, nn.Parameter) and one.requires_grad
                end = start + (steps + 1) * one.element_size()
                found.setdefault(id(one), (start, end, trained, f"{place}.{name}" if place else name))
    last = 0, 0, False, ""
    for one in sorted(found.values()):
        if one[0] < last[1] and (one[2] or last[2]):
            return last[3], one[3]
        last = max(last, one, key=lambda span: span[1])
    return None
