"""Errors that name the user's own part that has failed in a training or evaluation."""

from collections.abc import Iterator
from contextlib import contextmanager

from fedsim.answers import FAILURES, attributed, failed
from fedsim.code_digest import is_builtin
from fedsim.errors import FedsimError, PartError
from fedsim.learning.algorithms.contracts import ALGORITHM
from fedsim.learning.executors.contracts import TrainingSetup
from fedsim.learning.models.settings import own_name
from fedsim.learning.tasks.contracts import TASK


@contextmanager
def named_faults(setup: TrainingSetup, place: int | None = None) -> Iterator[None]:
    """Raise a failure in here as the error about the user's part.

    Where no frame of the traceback is that of such a part, as with layers of torch in a row, it is the model's if that
    is the user's, or else that of the task's losses or of the algorithm's loss.
    """
    try:
        yield
    except PartError as fault:
        fault.at = place if fault.at is None else fault.at
        raise
    except FedsimError:
        raise
    except FAILURES as failure:
        known = attributed(failure)
        if known is None and (asked := _own_member(setup)) is not None:
            known = failed(*asked, failure)
        if known is None:
            raise
        known.at = place
        raise known from failure


def _own_member(setup: TrainingSetup) -> tuple[str, str] | None:
    """Return the first of the user's own parts that the numbers of a batch come from, and its member."""
    if (name := own_name(setup.model)) is not None:
        return f"model {name}", "forward"
    if not is_builtin(type(setup.task)):
        return TASK.name_of(setup.task), "losses"
    if setup.algorithm.has_loss and not is_builtin(type(setup.algorithm)):
        return ALGORITHM.name_of(setup.algorithm), "loss"
    return None
