"""The executor "processes": this process and workers of one thread each, which give the bits of the sequential one.

The workers of this process serve all runs: a pool of `concurrent.futures`, started by spawn.
"""

import itertools
import os
import pickle
import signal
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import spawn
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, Final

from fedsim.errors import FedsimError
from fedsim.learning.executors import worker
from fedsim.learning.executors.contracts import TrainingSetup, check_cpu
from fedsim.learning.executors.cores import worker_count
from fedsim.learning.executors.portable import Shared, in_shared_memory, module_path
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.executors.spreading import NO_MODEL, SpreadingExecutor, spread, unlike

_NUMBERS: Final = itertools.count()
_DATA: Final[dict[int, Shared]] = {}
_PATIENCE_S: Final = 5.0
_STARTING: Final = threading.RLock()
_POOLS: Final[dict[int, ProcessPoolExecutor]] = {}
_PROCESSES: Final[list["_Worker"]] = []
_WORDS: Final = ["ended"]
"""How the worker ended that was lost last."""


class ProcessesExecutor(SpreadingExecutor):
    """Trains clients in this process and in workers, which are started once and serve all runs of this process.

    The bits are those of the sequential executor, whatever the number of processes. The data set and models lie in
    shared memory. Calls may come from several threads.
    """

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        check_cpu("processes", device)
        super().__init__(setup)
        self.workers, own = worker_count(), SequentialExecutor(setup)
        self.fingerprint, self.max_batch, self._trainer = own.fingerprint, own.max_batch, own.trainer
        content = worker.packed(setup, own.print, "processes")
        # Its data are shared by all setups that have them.
        if id(setup.data) not in _DATA:
            _DATA[id(setup.data)] = in_shared_memory(setup.data)
            weakref.finalize(setup.data, _DATA.pop, id(setup.data), None)
        settings = in_shared_memory(pickle.PickleBuffer(content))
        self._made_of = next(_NUMBERS), settings, _DATA[id(setup.data)]

    def _computed(self, jobs: Sequence[Any], costs: Sequence[float]) -> list[Any]:
        """Return the results of all jobs; this process takes jobs too, from the short end."""
        if self.workers == 1:
            return self._trainer.computed(jobs)
        models, places = unlike(jobs)
        stored, bare = in_shared_memory(models), [job._replace(base=NO_MODEL) for job in jobs]

        def there(share: Sequence[int]) -> Future[Any]:
            asked = [bare[i] for i in share], [places[i] for i in share], stored
            return _pool(self.workers - 1).submit(worker.compute, *self._made_of, *asked)

        def here(index: int) -> Any:
            return self._trainer.compute(jobs[index], index)

        with self._trainer.turn():
            try:
                return spread(costs, self.workers, there, here, _end)
            except BrokenProcessPool as error:
                raise _lost(error) from None


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


def _pool(workers: int) -> ProcessPoolExecutor:
    """Return the pool of as many workers."""
    with _STARTING:
        if workers not in _POOLS:
            _POOLS[workers] = ProcessPoolExecutor(workers, _Context(), worker.begin, (module_path(),))
        return _POOLS[workers]


def _end() -> None:
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


def _lost(error: BrokenProcessPool) -> FedsimError:
    """Return the error about a worker that is gone, and end the others; calls of other threads get the same."""
    with _STARTING:
        if _PROCESSES:
            _WORDS[:] = [_ending(error)]
            _end()
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
