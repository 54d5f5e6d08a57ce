"""What a module of torch is in digests: its code, its structure and its numbers."""

import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

from fedsim.code_digest import code_digest, is_users

_OF_TORCH = ("_parameters", "_buffers", "_modules")


def content_of(value: nn.Module | Callable[..., Any]) -> str:
    """Return a digest of a module, or of what gives one.

    It covers the classes of a user's own and their code, names and numbers of all arrays, and all plain attributes. An
    attribute that none of this describes counts with the very object, so that the digest holds in its process only.
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in _Telling().of(value):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


class _Telling:
    """Tells modules and what they hold as bytes, each module once."""

    def __init__(self) -> None:
        self._told: set[int] = set()

    def of(self, value: Any) -> Iterator[bytes]:
        """Yield what stands for a value."""
        yield type(value).__name__.encode()
        if isinstance(value, nn.Module):
            yield from self._module(value)
        elif isinstance(value, functools.partial):
            yield from self.of((value.func, value.args, value.keywords))
        elif isinstance(value, dict):
            yield from self.of([*value, *value.values()])
        elif isinstance(value, list | tuple | set | frozenset):
            yield str(len(value)).encode()
            for one in sorted(value, key=repr) if isinstance(value, set | frozenset) else value:
                yield from self.of(one)
        elif inspect.isclass(value) or inspect.isfunction(value):
            yield from _code(value)
        else:
            yield repr(value).encode()

    def _module(self, module: nn.Module) -> Iterator[bytes]:
        if id(module) in self._told:
            return
        self._told.add(id(module))
        yield from _code(type(module))
        for name, array in module.state_dict().items():
            yield f"{name} {array.dtype} {tuple(array.shape)}".encode()
            yield array.detach().cpu().contiguous().flatten().numpy().tobytes()
        for name, inner in module.named_children():
            yield name.encode()
            yield from self._module(inner)
        for name, attribute in vars(module).items():
            if name not in _OF_TORCH:
                yield name.encode()
                yield from self.of(attribute)


def _code(found: Any) -> Iterator[bytes]:
    yield f"{found.__module__}:{found.__qualname__}".encode()
    if found.__module__ == "__main__" or is_users(found.__module__):
        yield code_digest(found).text.encode()
