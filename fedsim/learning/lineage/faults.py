"""Of which client and round a failing part of the user's own was at work."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from fedsim.errors import PartError
from fedsim.learning.lineage.handles import Training


@contextmanager
def named_faults(trainings: Callable[[], Sequence[Training]]) -> Iterator[None]:
    """Name client and round in the error about a part of the user's own that fails in a training.

    The round is the one after the version of the model that the training started from.

    Parameters
    ----------
    trainings : returns them in the order of the jobs of the call
    """
    try:
        yield
    except PartError as fault:
        failed = trainings()
        fault.name_clients([one.client for one in failed])
        chosen = failed if fault.at is None else failed[fault.at : fault.at + 1]
        rounds = {one.base.version + 1 for one in chosen}
        if fault.round is None and len(rounds) == 1:
            fault.of_round(rounds.pop())
        raise
