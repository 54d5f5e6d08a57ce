"""The worker processes of this process, which all runs share, and the scheduler that keeps them busy."""

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

from fedsim.errors import FedsimError
from fedsim.learning.executors.workers.calls import Call
from fedsim.learning.executors.workers.link import Link


class Pool:
    """Hands the jobs of all calls to idle workers; calls may be made from several threads.

    A thread for each worker reads its replies, and hands out what comes next.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._links: list[Link] = []
        self._calls: list[Call] = []
        self.lost: FedsimError | None = None

    def results(self, call: Call) -> Iterator[Any]:
        """Yield the results of a call in the order of its jobs, as they become ready."""
        with self._changed:
            while len(self._links) < call.workers:
                self._start()
            self._calls.append(call)
            self._calls.sort(key=lambda one: -one.urgency)
        try:
            for _ in range(call.size):
                self._feed()
                with self._changed:
                    self._changed.wait_for(lambda: self.lost or call.ready())
                    if self.lost is not None:
                        raise self.lost
                    result = call.get()
                yield result
        finally:
            with self._changed:
                self._calls.remove(call)

    def close(self) -> None:
        """End the workers, whatever they do."""
        with self._changed:
            self.lost = self.lost or FedsimError("the worker processes have been closed")
            self._changed.notify_all()
        for link in self._links:
            link.close()

    def abandon(self) -> None:
        """Let go of the sockets in a process that was forked from this one, so that its parent's end is noticed."""
        for link in self._links:
            link.abandon()

    def _start(self) -> None:
        link = Link(len(self._links))
        self._links.append(link)
        threading.Thread(target=self._read, args=(link,), daemon=True, name="fedsim-worker").start()

    def _feed(self) -> None:
        """Give every idle worker jobs, if there are any."""
        for link in self._links:
            with self._changed:
                if link.task is not None:
                    continue
                link.task = self._next_task(link)
                if link.task is None:
                    continue
                call, _ = link.task
            try:
                link.send()
            except Exception as error:
                with self._changed:
                    call.error, link.task = error, None
                    self._changed.notify_all()

    def _next_task(self, link: Link) -> tuple[Call, list[int]] | None:
        for call in self._calls:
            if link.index < call.workers and call.error is None and (jobs := call.next_jobs()):
                return call, jobs
        return None

    def _read(self, link: Link) -> None:
        """Take in a worker's replies for as long as it lives."""
        while True:
            try:
                reply = link.receive()
            except (EOFError, OSError):
                self._lose(link)
                return
            with self._changed:
                if link.task is None:
                    raise RuntimeError("a worker replied without a request")
                call, jobs = link.task
                call.put(jobs, reply)
                link.task = None
                self._changed.notify_all()
            self._feed()

    def _lose(self, link: Link) -> None:
        """Fail all calls, since a worker is gone; the next call gets a new pool."""
        error = FedsimError(
            f"a worker process of the executor 'processes' {_ending(link.wait())}; results of finished trainings are "
            f"in the store. Start again; fewer workers (FEDSIM_WORKERS) take less memory"
        )
        with self._changed:
            if self.lost is not None:
                return
            self.lost = error
        self.close()


def _ending(status: int | None) -> str:
    if status is None or status >= 0:
        return f"ended with exit status {status}"
    hint = ", which the system sends when memory runs out" if status == -signal.SIGKILL else ""
    return f"was ended by {signal.Signals(-status).name}{hint}"


_START = threading.Lock()
_pools: list[Pool] = []


def pool() -> Pool:
    """Return the pool of this process; a new one if a worker of the last was lost."""
    with _START:
        if not _pools or _pools[-1].lost is not None:
            _pools[:] = [Pool()]
        return _pools[-1]


@atexit.register
def _close() -> None:
    for one in _pools:
        one.close()


def _forked() -> None:
    for one in _pools:
        one.abandon()
    _pools.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forked)
