"""Runs side by side in processes of this machine."""

import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, Listener, wait
from pathlib import Path
from typing import Any

from fedsim.errors import RunError
from fedsim.learning.executors.cores import ENVIRONMENT_VARIABLE, usable_cores
from fedsim.learning.executors.portable import module_path
from fedsim.studies.running.records import Done, Ended, Task
from fedsim.studies.running.zygote import KEY


def in_processes(
    packs: Sequence[Sequence[Task]], blobs: Mapping[str, bytes], options: Mapping[str, Any], jobs: int | None
) -> Generator[Ended, None, None]:
    """Run packs, and yield what has ended; a pack whose process ends without a result is tried once more by runs."""
    todo, again = deque(packs), set[tuple[str, int | None]]()
    count = max(1, min(jobs or usable_cores(), len(todo)))
    learns = any(task.learns for pack in packs for task in pack)
    with _forking(learns=learns, threads=max(1, usable_cores() // count)) as fork:
        busy: dict[Connection, Sequence[Task]] = {}

        def hand(worker: Connection) -> None:
            if not todo:
                worker.close()
                return
            busy[worker] = todo.popleft()
            arms = {task.arm for task in busy[worker]}
            worker.send(({arm: blobs[arm] for arm in arms}, busy[worker], options))

        for _ in range(count):
            hand(fork())
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
                    worker = fork()
                yield ended
                hand(worker)


@contextmanager
def _forking(*, learns: bool, threads: int) -> Generator[Callable[[], Connection], None, None]:
    """Start the process that forks workers; what is given forks one, and returns the line to it."""
    key = secrets.token_bytes(32)
    environment = {ENVIRONMENT_VARIABLE: str(threads)} | os.environ
    environment |= {KEY: key.hex(), "PYTHONPATH": os.pathsep.join(module_path())}
    if "OMP_NUM_THREADS" not in os.environ:
        environment |= {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    with tempfile.TemporaryDirectory(prefix="fedsim-study-") as place:
        address, lines, pipe = str(Path(place) / "line"), list[Connection](), subprocess.PIPE
        command = [sys.executable, "-m", "fedsim.studies.running.zygote", address, "learns" if learns else "times"]
        with Listener(address, family="AF_UNIX", authkey=key) as listener:
            zygote = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment)  # noqa: S603

            def fork() -> Connection:
                if zygote.stdin is None or zygote.poll() is not None:
                    raise RunError("the process that starts the workers of the study has ended")
                zygote.stdin.write(b"\n")
                zygote.stdin.flush()
                lines.append(listener.accept())
                lines[-1].recv()
                return lines[-1]

            try:
                if not zygote.stdout or not zygote.stdout.readline():
                    raise RunError("the process that starts the workers of the study cannot be started")
                yield fork
            finally:
                for line in lines:
                    line.close()
                with contextlib.suppress(BrokenPipeError):
                    zygote.communicate()
