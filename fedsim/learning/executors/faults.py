"""What a user's own part raises in a training or evaluation, as an error that names the part."""

from collections.abc import Iterator
from contextlib import contextmanager

from fedsim.answers import attributed, failed
from fedsim.errors import FedsimError, PartError
from fedsim.learning.executors.contracts import TrainingSetup
from fedsim.learning.models.settings import own_name


@contextmanager
def named_faults(setup: TrainingSetup, place: int | None = None) -> Iterator[None]:
    """Raise what a part of the user's own raises in here as the error about this part.

    Where no frame of the traceback is that of such a part, as with layers of torch in a row, it is the model's if that
    is the user's.

    Parameters
    ----------
    setup : what trainings have in common
    place : of the job among those of the call; None for several

    Raises
    ------
    PartError
        In the place of an error of such a part; its ``at`` is the place of the job.
    """
    try:
        yield
    except PartError as fault:
        fault.at = place if fault.at is None else fault.at
        raise
    except FedsimError:
        raise
    except Exception as failure:
        known = attributed(failure)
        if known is None and (name := own_name(setup.model)) is not None:
            known = failed(f"model {name}", "forward", failure)
        if known is None:
            raise
        known.at = place
        raise known from failure
