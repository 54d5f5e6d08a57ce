"""What a worker does: it computes jobs of another process on one thread."""

import ctypes
import multiprocessing.connection
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, cast

import torch

from fedsim.answers import FAILURES
from fedsim.answers.module_values import take_over, told
from fedsim.errors import FedsimError
from fedsim.foreign import Foreign
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.executors.contracts import TrainingSetup
from fedsim.learning.executors.portable import Shared, by_value, from_bytes, portable
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.executors.trials import check_same
from fedsim.learning.models.settings import own_name

_MOST_SETUPS: Final = 4

Failed = bytes
"""An error of a worker, by value."""


class Worker:
    """Computes jobs as the sequential executor does; an error is a result by value."""

    def __init__(self, content: bytes, data: Dataset, device: str = "cpu") -> None:
        torch.set_num_threads(1)
        self._failed: Failed = b""
        try:
            setup, wanted, variables = from_bytes(content)
            take_over(variables)
            self._executor = SequentialExecutor(replace(setup, data=data), device)
            check_same(own_name(setup.model) or type(setup.model).__name__, self._executor.print, wanted)
        except FAILURES as error:
            self._failed = portable(error)

    def known(self) -> tuple[str, int] | Failed:
        """Return fingerprint and longest batch."""
        return self._failed or (self._executor.fingerprint, self._executor.max_batch)

    def compute(self, jobs: Sequence[Any], places: Sequence[int], *models: Any) -> list[Any] | Failed:
        """Return what trainings and chunks give that begin with the models at these places."""
        if self._failed:
            return self._failed
        started = [job._replace(base=models[place]) for job, place in zip(jobs, places, strict=True)]
        try:
            return self._executor.trainer.computed(started)
        except Exception as error:
            return portable(error)


def packed(setup: TrainingSetup, wanted: str, executor: str) -> bytes:
    """Return a setup without its data, the print of its own code, and variables that this reads, for a worker."""
    bare = replace(setup, data=cast(Any, None), expected=None)
    codes = setup.model.codes() if isinstance(setup.model, Foreign) else ()
    kinds = map(type, (setup.algorithm, setup.task, *setup.task.metrics, setup.model))
    own = (*kinds, *codes)
    try:
        return by_value((bare, wanted, told(own)[1]), *own)
    except Exception as error:
        kind = type(setup.model)
        raise FedsimError(
            f"learning.model: {kind.__module__}.{kind.__qualname__} cannot be sent to worker processes ({error}); "
            f"allowed with the executor {executor!r}: a class at the top of a module, with settings that can be "
            f"pickled, and such a learning.algorithm and learning.task; or choose the executor 'sequential'"
        ) from error


_WORKERS: Final[dict[int, Worker]] = {}
"""Of this process, by the numbers of their runs."""


def compute(
    number: int, settings: Shared, data: Shared, jobs: Sequence[Any], places: Sequence[int], models: Shared
) -> list[Any] | Failed:
    """Return what jobs of the run of a number give, whose settings, data and models lie in shared memory."""
    if number not in _WORKERS:
        while len(_WORKERS) >= _MOST_SETUPS:
            del _WORKERS[next(iter(_WORKERS))]
        _WORKERS[number] = Worker(settings.thing(), data.thing())
    return _WORKERS[number].compute(jobs, places, *models.thing())


def begin(path: Sequence[str]) -> None:
    """Prepare a fresh process, which ends with its parent, in the middle of a training too."""
    sys.path[:] = path
    torch.set_num_threads(1)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def watch() -> None:
            multiprocessing.connection.wait([parent.sentinel])
            os._exit(0)

        threading.Thread(target=watch, daemon=True).start()
    if sys.platform == "linux":
        os.setsid()  # so that Ctrl-C reaches the run only
        # Activations of some megabytes are freed and asked for again in each batch; glibc would give them to the
        # system and get pages back that it has to clear.
        libc = ctypes.CDLL(None)
        for option, value in ((-3, 1 << 28), (-1, 1 << 28), (-2, 1 << 24)):
            libc.mallopt(option, value)
