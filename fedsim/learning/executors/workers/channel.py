"""Messages between two processes of fedsim: small ones through a socket, their arrays through shared memory."""

import contextlib
import os
import pickle
import socket
from collections.abc import Sequence
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any, Final

import cloudpickle
import numpy as np

from fedsim.learning.executors.workers.segments import Segment, needed

_PROTOCOL: Final = 5


class Channel:
    """One end of a pair of sockets, over which requests and replies alternate.

    Each end writes the arrays of its messages into a segment of its own, over those of its last message. So an array
    that was received without a copy holds until this end has replied.

    Parameters
    ----------
    end : socket, which the channel owns from now on
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._connection = Connection(os.dup(end.fileno()))
        self._out: Segment | None = None
        self._in: Segment | None = None

    def send(self, message: Any, segments: Sequence[Segment] = ()) -> None:
        """Send a message, and let the other end share segments.

        Raises
        ------
        OSError
            If the other end is gone.
        """
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
        """Return the next message and the segments that came with it.

        Parameters
        ----------
        copy : give the arrays memory of their own, so that they hold after the next message

        Raises
        ------
        EOFError, OSError
            If the other end is gone.
        """
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
        """Let go of this end, which another process keeps."""
        self._socket.close()
        self._connection.close()


def by_value(thing: Any) -> bytes:
    """Return a thing as bytes, with the code of classes that no other process can import, such as a script's own."""
    return bytes(cloudpickle.dumps(thing, protocol=_PROTOCOL))


def from_bytes(content: bytes) -> Any:
    """Return what `by_value` was given."""
    return pickle.loads(content)  # noqa: S301 - the other end is fedsim too
