"""The worker processes of this process, which all runs share: a pool of `concurrent.futures`, started by spawn."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import spawn
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, Final

from fedsim.errors import FedsimError
from fedsim.learning.executors.portable import module_path
from fedsim.learning.executors.workers import worker

_PATIENCE_S: Final = 5.0
_STARTING: Final = threading.RLock()
_POOLS: Final[dict[int, ProcessPoolExecutor]] = {}
_PROCESSES: Final[list["_Worker"]] = []
_WORDS: Final = ["ended"]
"""How the worker ended that was lost last."""


class _Worker(SpawnProcess):
    """A process that does not do again what the script of this process does outside functions."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - multiprocessing's name
        whole = spawn.get_preparation_data

        def without_script(name: str) -> dict[str, Any]:
            return {key: value for key, value in whole(name).items() if not key.startswith("init_main")}

        with _STARTING:
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if sys.platform != "win32" else None
            spawn.get_preparation_data = without_script
            try:
                return SpawnProcess._Popen(process_obj)
            finally:
                spawn.get_preparation_data = whole
                if blocked is not None:
                    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
                _PROCESSES.append(process_obj)


class _Context(SpawnContext):
    Process = _Worker


def pool(workers: int) -> ProcessPoolExecutor:
    """Return the pool of as many workers."""
    with _STARTING:
        if workers not in _POOLS:
            _POOLS[workers] = ProcessPoolExecutor(workers, _Context(), worker.begin, (module_path(),))
        return _POOLS[workers]


def end() -> None:
    """End all workers, whatever they do; the next call gets new ones."""
    with _STARTING:
        gone, started = list(_POOLS.values()), list(_PROCESSES)
        _PROCESSES.clear()
        _POOLS.clear()
    for process in started:
        with suppress(ValueError):
            process.kill()
    for one in gone:
        one.shutdown(wait=False, cancel_futures=True)


def lost(error: BrokenProcessPool) -> FedsimError:
    """Return the error about a worker that is gone, and end the others; calls of other threads get the same."""
    with _STARTING:
        if _PROCESSES:
            _WORDS[:] = [_ending(error)]
            end()
        return FedsimError(
            f"a worker process of the executor 'processes' {_WORDS[0]}; results of finished trainings are in the "
            "store. Start again; fewer workers (FEDSIM_WORKERS) take less memory"
        )


def _ending(error: BrokenProcessPool) -> str:
    end = time.monotonic() + _PATIENCE_S
    while any(process.exitcode is None for process in _PROCESSES) and time.monotonic() < end:
        time.sleep(0.05)  # the pool's thread waits for the processes too, and may know first
    found = [process.exitcode or 0 for process in _PROCESSES]
    codes = [code for code in found if code not in (0, -signal.SIGTERM)]
    ending = f"ended with exit status {codes[0]}" if codes else f"ended ({error})"
    if codes and codes[0] < 0:
        hint = ", which the system sends when memory runs out" if codes[0] == -signal.SIGKILL else ""
        ending = f"was ended by {signal.Signals(-codes[0]).name}{hint}"
    return ending


def _forked() -> None:
    _POOLS.clear()
    _PROCESSES.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forked)
