"""The process that forks workers: fedsim, and torch where runs learn, are imported once for all of them.

It is a command of its own and not started by `multiprocessing`, so that a script needs no ``if __name__ ==
"__main__"``. Its workers end with it, and it ends with the study.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Client, Connection
from typing import Final

KEY: Final = "FEDSIM_STUDY_KEY"


def zygote(address: str, key: bytes, *, learns: bool) -> None:
    """Fork a worker for each line that is read; at the end of the lines stop all of them."""
    import scipy.special  # noqa: F401 - fading needs it

    import fedsim.studies.running.records

    if learns:
        import fedsim.learning.models.flops  # noqa: F401 - loads torch
    # Ctrl-C reaches all processes of a terminal; the study closes this one's input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.write(1, b"\n")
    os.dup2(2, 1)
    workers = []
    for _ in sys.stdin.buffer:
        workers.append(os.fork())
        if not workers[-1]:
            threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
            _work(Client(address, authkey=key))
            os._exit(0)
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def _work(study: Connection) -> None:
    from fedsim.studies.running.records import run_pack

    with contextlib.suppress(EOFError, OSError):
        study.send(os.getpid())
        while True:
            study.send(run_pack(*study.recv()))


if __name__ == "__main__":
    zygote(sys.argv[1], bytes.fromhex(os.environ.pop(KEY)), learns=sys.argv[2] == "learns")
