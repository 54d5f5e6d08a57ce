"""Digests of modules of torch: their code, their structure and their numbers."""

import functools
import hashlib
import inspect
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from uuid import uuid4

import numpy as np
import torch
from torch import Tensor, nn

from fedsim.code_digest import code_digest, is_users

_OF_TORCH: Final = ("_parameters", "_buffers", "_modules")
_ROWS: Final = (list, tuple, set, frozenset, torch.Size)
_PLAIN: Final = (
    *(type(None), bool, int, float, complex, str, bytes, range, slice, type(...)),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
)
"""Types whose text is their whole value."""


def content_of(value: nn.Module | Callable[..., Any]) -> str:
    """Return a digest of a module, or of the class or function that makes one."""
    digest = hashlib.blake2b(digest_size=16)
    for part in _Telling().of(value):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


class _Telling:
    """Serialises modules and their attributes for a digest, each module once."""

    def __init__(self) -> None:
        self._told: set[int] = set()
        self._open: list[int] = []

    def of(self, value: Any) -> Iterator[bytes]:
        yield type(value).__name__.encode()
        if isinstance(value, nn.Module):
            yield from self._module(value)
        elif type(value) in _PLAIN:
            yield repr(value).encode()
        elif isinstance(value, Tensor) and value.layout is torch.strided:
            yield from _array("trained" if value.requires_grad else "", value)
        elif type(value) is np.ndarray and not value.dtype.hasobject:
            yield f"{value.dtype.descr} {value.shape}".encode()
            yield value.tobytes()
        elif inspect.isclass(value):
            yield from _code(value)
        elif id(value) in self._open:
            yield str(self._open[::-1].index(id(value))).encode()
        else:
            self._open.append(id(value))
            yield from self._parts(value)
            self._open.pop()

    def _parts(self, value: Any) -> Iterator[bytes]:
        """Yield the bytes of a value that may hold others, also itself."""
        if isinstance(value, functools.partial):
            yield from self.of((value.func, value.args, value.keywords))
        elif type(value) in (dict, OrderedDict):
            yield from self.of([*value, *value.values()])
        elif type(value) in _ROWS:
            yield str(len(value)).encode()
            for one in sorted(value, key=repr) if isinstance(value, set | frozenset) else value:
                yield from self.of(one)
        elif inspect.isfunction(value):
            yield from _code(value)
            if value.__closure__:
                yield from self.of([cell.cell_contents for cell in value.__closure__])
        elif inspect.ismethod(value):
            yield from self.of((value.__func__, value.__self__))
        elif isinstance(value, weakref.ref):
            yield from self.of(value())
        else:
            yield from self._object(value)

    def _object(self, value: Any) -> Iterator[bytes]:
        """Yield class, code and pickled state of an object."""
        yield from _code(type(value))
        try:
            kept = value.__reduce_ex__(4)
        except Exception:  # whatever a class of the user's raises
            yield uuid4().bytes
            return
        if isinstance(kept, str):
            yield f"{value.__module__}:{kept}".encode()
            return
        for one in kept:
            yield from self.of(list(one) if isinstance(one, Iterator) else one)

    def _module(self, module: nn.Module) -> Iterator[bytes]:
        if id(module) in self._told:
            return
        self._told.add(id(module))
        yield from _code(type(module))
        state = module.state_dict()
        for name, array in (*state.items(), *_beside(module, state)):
            if isinstance(array, Tensor):
                yield from _array(name, array)
            else:
                yield name.encode()
                yield from self.of(array)
        first: dict[int, str] = {}
        for name, parameter in module.named_parameters(remove_duplicate=False):
            if first.setdefault(id(parameter), name) != name:
                yield f"{name} is {first[id(parameter)]}".encode()
            if not parameter.requires_grad:
                yield f"{name} is frozen".encode()
        for name, inner in module.named_children():
            yield name.encode()
            yield from self._module(inner)
        for name, attribute in vars(module).items():
            if name not in _OF_TORCH:
                yield name.encode()
                yield from self.of(attribute)


def _beside(module: nn.Module, state: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    return ((name, buffer) for name, buffer in module.named_buffers() if name not in state)


def _array(name: str, array: Tensor) -> Iterator[bytes]:
    yield f"{name} {array.dtype} {tuple(array.shape)}".encode()
    numbers = array.detach().cpu().resolve_conj().resolve_neg().contiguous().flatten()
    yield numbers.view(torch.uint8).numpy().tobytes()


def _code(found: Any) -> Iterator[bytes]:
    yield f"{found.__module__}:{found.__qualname__}".encode()
    if found.__module__ == "__main__" or is_users(found.__module__):
        yield code_digest(found).text.encode()
