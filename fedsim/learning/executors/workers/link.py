"""A worker process as the process of a run sees it."""

import os
import socket
import subprocess
import sys
import threading
import weakref
from typing import Final

from fedsim.learning.executors.workers.calls import Call, Setup
from fedsim.learning.executors.workers.channel import Channel, module_path
from fedsim.learning.executors.workers.messages import Reply, Request
from fedsim.learning.executors.workers.segments import Segment

# The program is not a module run by name, so that what a script does outside functions is not done again.
_PROGRAM: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from fedsim.learning.executors.workers.worker import main; main(int(sys.argv[1]))"
)
_ENVIRONMENT: Final = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Activations of some megabytes are freed and asked for again in each batch; glibc would give them to the system and
    # get pages back that it has to clear.
    "MALLOC_MMAP_THRESHOLD_": str(1 << 28),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 28),
    "MALLOC_TOP_PAD_": str(1 << 24),
}
_PATIENCE_S: Final = 5.0


class Link:
    """Starts a worker and exchanges messages with it.

    The worker is in a session of its own, so that Ctrl-C reaches the run only.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.task: tuple[Call, list[int]] | None = None
        self._segments: weakref.WeakValueDictionary[int, Segment] = weakref.WeakValueDictionary()
        self._setups: weakref.WeakValueDictionary[int, Setup] = weakref.WeakValueDictionary()
        # The reply may be there, and the next task be sent, before this thread has taken note of what it has sent.
        self._sending = threading.Lock()
        self._told_segments: set[int] = set()
        self._told_setups: set[int] = set()
        mine, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - a program of fedsim's own
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), *module_path()],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, **_ENVIRONMENT},
            )
        self._channel = Channel(mine)

    def send(self) -> None:
        """Send the worker its task, with what it does not know yet; `receive` notices a worker that is gone."""
        if self.task is None:
            raise RuntimeError("there is no task to send")
        call, jobs = self.task
        with self._sending:
            new = [segment for segment in call.segments if segment.number not in self._told_segments]
            request = self._request(call, jobs, new)
            try:
                self._channel.send(request, new)
            except OSError:
                return
            self._told_segments.difference_update(request.old_segments)
            self._told_segments.update(request.new_segments)
            self._told_setups.difference_update(request.old_setups)
            self._told_setups.add(request.setup)
            self._segments.update({segment.number: segment for segment in new})
            self._setups[request.setup] = call.setup

    def receive(self) -> Reply:
        reply, _ = self._channel.receive(copy=True)
        if not isinstance(reply, Reply):
            raise TypeError(f"a worker sent {type(reply).__name__}; Reply is needed")
        return reply

    def wait(self) -> int | None:
        """Return the exit status of a worker whose socket is closed, negative for a signal; None if it goes on."""
        try:
            return self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        """End the worker, whatever it does."""
        self._channel.close()
        if self.wait() is None:
            self._process.kill()
            self._process.wait()

    def _request(self, call: Call, jobs: list[int], new: list[Segment]) -> Request:
        setup = call.setup.message
        return Request(
            setup=setup.number,
            work=call.work(jobs),
            new_setup=None if setup.number in self._told_setups else setup,
            new_segments=[segment.number for segment in new],
            old_segments=sorted(self._told_segments.difference(self._segments)),
            old_setups=sorted(self._told_setups.difference(self._setups)),
        )

    def abandon(self) -> None:
        """Let go of the socket and leave the worker alone."""
        self._channel.abandon()
