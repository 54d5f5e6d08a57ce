"""Messages between two processes of fedsim: small ones through a socket, their arrays through shared memory."""

import contextlib
import os
import pickle
import socket
import sys
import threading
from collections.abc import Sequence
from importlib import machinery
from multiprocessing import reduction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import cloudpickle
import numpy as np

from fedsim.code_digest import Code
from fedsim.learning.executors.workers.segments import Segment, needed

_PROTOCOL: Final = 5
_OWN: Final = __name__.partition(".")[0]
_REGISTERING: Final = threading.Lock()
"""cloudpickle's list of modules to take by value belongs to the whole process."""


class Channel:
    """One end of a pair of sockets, over which requests and replies alternate.

    Each end writes the arrays of its messages into a segment of its own, over those of its last message. So an array
    that was received without a copy holds until this end has replied.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._connection = Connection(os.dup(end.fileno()))
        self._out: Segment | None = None
        self._in: Segment | None = None

    def send(self, message: Any, segments: Sequence[Segment] = ()) -> None:
        """Send a message, and let the other end share segments."""
        kept: list[pickle.PickleBuffer] = []
        head = pickle.dumps(message, protocol=_PROTOCOL, buffer_callback=kept.append)
        buffers = [buffer.raw() for buffer in kept]
        size = needed(buffers)
        shared = list(segments)
        grown = size > (0 if self._out is None else self._out.size)
        if grown:
            self._out = Segment.create(2 * size)
            shared.append(self._out)
        places = [] if self._out is None else self._out.write(buffers)
        self._connection.send((head, places, [segment.size for segment in shared], grown))
        if shared:
            reduction.sendfds(self._socket, [segment.handle for segment in shared])

    def receive(self, *, copy: bool) -> tuple[Any, list[Segment]]:
        """Return the next message and the segments that came with it."""
        head, places, sizes, grown = self._connection.recv()
        handles = reduction.recvfds(self._socket, len(sizes)) if sizes else []
        segments = [Segment(handle, size, writable=False) for handle, size in zip(handles, sizes, strict=True)]
        if grown:
            self._in = segments.pop()
        views = [] if self._in is None else [self._in.view(place) for place in places]
        buffers = [np.array(view).data.toreadonly() for view in views] if copy else views
        return pickle.loads(head, buffers=buffers), segments  # noqa: S301 - the other end is fedsim too

    def close(self) -> None:
        """Close this end; the other one notices, and so does a thread of this process that receives."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def abandon(self) -> None:
        """Let go of this end, which another process owns."""
        self._socket.close()
        self._connection.close()


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


def _is_hidden(name: str) -> bool:
    """Return whether the path leads to no module of a name, or to another one than this process has loaded."""
    loaded, found = sys.modules[name].__spec__, machinery.PathFinder.find_spec(name)
    return loaded is None or found is None or loaded.origin != found.origin


def from_bytes(content: bytes) -> Any:
    return pickle.loads(content)  # noqa: S301 - the other end is fedsim too
