"""Things for another process: as bytes with the code of the user's own classes, or in memory that both share.

On Linux shared memory has no name, so that the system frees it with its last holder.
"""

import mmap
import os
import pickle
import sys
import tempfile
import threading
import traceback
import weakref
from contextlib import suppress
from dataclasses import dataclass
from importlib import machinery
from pathlib import Path
from typing import Any, Final

import cloudpickle

from fedsim.code_digest import Code
from fedsim.errors import FedsimError

_PROTOCOL: Final = 5
_OWN: Final = __name__.partition(".")[0]
_REGISTERING: Final = threading.Lock()
"""cloudpickle's list of modules to take by value belongs to the whole process."""
# A cache line: arrays that begin there are read as fast as torch's own.
_ALIGNMENT: Final = 64


def by_value(thing: Any, *classes: Code) -> bytes:
    """Pickle a thing, with the code of classes that no other process can import, such as a script's own."""
    bases = [base for found in classes for base in (found.__mro__ if isinstance(found, type) else (found,))]
    homes = {base.__module__.partition(".")[0] for base in bases}
    with _REGISTERING:
        new = homes - cloudpickle.list_registry_pickle_by_value() - {_OWN, "__main__", *sys.stdlib_module_names}
        hidden = [sys.modules[name] for name in sorted(new) if name in sys.modules and _is_hidden(name)]
        for module in hidden:
            cloudpickle.register_pickle_by_value(module)
        try:
            return bytes(cloudpickle.dumps(thing, protocol=_PROTOCOL))
        finally:
            for module in hidden:
                cloudpickle.unregister_pickle_by_value(module)


def module_path() -> list[str]:
    """Return where this process looks for modules, the current folder by its name."""
    return [entry or str(Path.cwd()) for entry in sys.path]


def portable(error: BaseException) -> bytes:
    """Return an error as bytes; one that cannot be pickled, or would end this process, is put into words."""
    if isinstance(error, Exception):
        if not isinstance(error, FedsimError):
            error.add_note(f"In a worker process:\n{''.join(traceback.format_exception(error))}")
        with suppress(Exception):
            content = by_value(error)
            from_bytes(content)
            return content
    return by_value(FedsimError(f"a worker process failed: {error!r}"))


def _is_hidden(name: str) -> bool:
    """Return whether the path leads to no module of a name, or to another one than this process has loaded."""
    loaded, found = sys.modules[name].__spec__, machinery.PathFinder.find_spec(name)
    return loaded is None or found is None or loaded.origin != found.origin


def from_bytes(content: bytes) -> Any:
    return pickle.loads(content)  # noqa: S301 - the other end is fedsim too


@dataclass(frozen=True)
class Shared:
    """A thing whose arrays lie in shared memory, as another process is told."""

    content: bytes
    path: str
    places: tuple[tuple[int, int], ...]

    def thing(self) -> Any:
        """Return it with read-only arrays; the memory is held as long as one of them is."""
        with Path(self.path).open("rb") as file:
            memory = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        buffers = [memory[start : start + size] for start, size in self.places]
        return pickle.loads(self.content, buffers=buffers)  # noqa: S301 - of the process that has started this one


def in_shared_memory(thing: Any) -> Shared:
    """Return a thing whose arrays are copied into shared memory, which is freed with what is returned."""
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    if sys.platform == "linux":
        handle = os.memfd_create("fedsim")
        path = f"/proc/{os.getpid()}/fd/{handle}"
    else:
        handle, path = tempfile.mkstemp(prefix="fedsim-")
    places, start = [], 0
    with os.fdopen(handle, "wb", closefd=sys.platform != "linux") as file:
        for numbers in (buffer.raw() for buffer in buffers):
            places.append((start, numbers.nbytes))
            file.seek(start)
            file.write(numbers)
            start += -(-numbers.nbytes // _ALIGNMENT) * _ALIGNMENT
        file.truncate(max(start, 1))
    shared = Shared(content, path, tuple(places))
    if sys.platform == "linux":
        weakref.finalize(shared, os.close, handle)
    else:
        weakref.finalize(shared, Path(path).unlink, missing_ok=True)
    return shared
