"""Runs side by side in processes of this machine."""

import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Listener, wait
from pathlib import Path
from typing import Any

from fedsim.errors import RunError
from fedsim.learning.executors.cores import usable_cores
from fedsim.learning.executors.workers.portable import module_path
from fedsim.studies.running.records import Done, Task
from fedsim.studies.running.zygote import KEY

Ended = list[tuple[Done, bytes]]


def in_processes(
    packs: Sequence[Sequence[Task]], blobs: Mapping[str, bytes], options: Mapping[str, Any], jobs: int | None
) -> Generator[Ended, None, None]:
    """Run packs, and yield what has ended; a pack whose process ends without a result is tried once more by runs."""
    todo, again = deque(packs), set[tuple[str, int | None]]()
    count = max(1, min(jobs or usable_cores(), len(todo)))
    learns = any(task.learns for pack in packs for task in pack)
    with _Workers.started(learns=learns, threads=max(1, usable_cores() // count)) as workers:
        busy: dict[Connection, Sequence[Task]] = {}

        def hand(worker: Connection) -> None:
            """Give a worker the next pack, or let it go."""
            if not todo:
                worker.close()
                return
            busy[worker] = todo.popleft()
            arms = {task.arm for task in busy[worker]}
            worker.send(({arm: blobs[arm] for arm in arms}, busy[worker], options))

        for _ in range(count):
            hand(workers.fork())
        while busy:
            for ready in wait(list(busy)):
                worker = next(one for one in busy if one is ready)
                pack = busy.pop(worker)
                try:
                    ended: Ended = worker.recv()
                except (EOFError, OSError):
                    ended = []
                    for task in pack:
                        if (task.run, task.rounds) in again:
                            text = "its process ended twice without a result; is the memory enough?"
                            ended.append((Done(task.run, task.rounds, error=text), b""))
                        else:
                            again.add((task.run, task.rounds))
                            todo.append([task])
                    worker = workers.fork()
                yield ended
                hand(worker)


@dataclass
class _Workers:
    """The process that forks workers, and the lines to them."""

    zygote: "subprocess.Popen[bytes]"
    listener: Listener
    lines: list[Connection] = field(default_factory=list)

    @classmethod
    @contextmanager
    def started(cls, *, learns: bool, threads: int) -> Generator["_Workers", None, None]:
        key = secrets.token_bytes(32)
        environment = os.environ | {KEY: key.hex(), "PYTHONPATH": os.pathsep.join(module_path())}
        if "OMP_NUM_THREADS" not in os.environ:
            environment |= {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        with tempfile.TemporaryDirectory(prefix="fedsim-study-") as place:
            address = str(Path(place) / "line")
            command = [sys.executable, "-m", "fedsim.studies.running.zygote", address, "learns" if learns else "times"]
            with Listener(address, family="AF_UNIX", authkey=key) as listener:
                pipe = subprocess.PIPE
                zygote = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment)  # noqa: S603
                workers = cls(zygote, listener)
                try:
                    if not zygote.stdout or not zygote.stdout.readline():
                        raise RunError("the process that starts the workers of the study cannot be started")
                    yield workers
                finally:
                    for line in workers.lines:
                        line.close()
                    with contextlib.suppress(BrokenPipeError):
                        zygote.communicate()

    def fork(self) -> Connection:
        """Return the line to a new worker."""
        if self.zygote.stdin is None or self.zygote.poll() is not None:
            raise RunError("the process that starts the workers of the study has ended")
        self.zygote.stdin.write(b"\n")
        self.zygote.stdin.flush()
        self.lines.append(self.listener.accept())
        self.lines[-1].recv()
        return self.lines[-1]
