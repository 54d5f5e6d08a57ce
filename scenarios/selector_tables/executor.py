"""One executor for all runs of a process: its steps are recorded once."""

from typing import Final

from fedsim.learning import Executor, TrainingSetup

_EXECUTORS: Final[dict[str, Executor]] = {}


def shared(setup: TrainingSetup, device: str) -> Executor:
    """Return the executor of this process for a model, local training and data set.

    Initial weights come with each job, so runs of several seeds can share it.
    """
    from fedsim.learning.executors.stacked.executor import StackedExecutor  # torch, in the workers alone

    key = f"{setup.model!r} {setup.local!r} {setup.precision} {device} {setup.data.digest}"
    if key not in _EXECUTORS:
        _EXECUTORS[key] = StackedExecutor(setup, device)
    return _EXECUTORS[key]
