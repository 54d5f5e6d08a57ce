"""Errors of a user's own part that name the client and the round."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fedsim.errors import PartError
from fedsim.learning.lineage.handles import Training


@contextmanager
def named_faults(trainings: Sequence[Training]) -> Iterator[None]:
    try:
        yield
    except PartError as fault:
        name_fault(fault, trainings)
        raise


@contextmanager
def of_training(training: Training) -> Iterator[None]:
    try:
        yield
    except PartError as fault:
        fault.at = None
        name_fault(fault, [training])
        raise


@contextmanager
def of_clients(clients: Sequence[int]) -> Iterator[None]:
    try:
        yield
    except PartError as fault:
        fault.at = None
        fault.name_clients(clients)
        raise


@contextmanager
def of_model(version: int) -> Iterator[None]:
    try:
        yield
    except PartError as fault:
        if fault.round is None:
            fault.of_round(version)
        raise


def name_fault(fault: PartError, trainings: Sequence[Training]) -> None:
    """Name client and round in an error: the round after the version that the training started from."""
    fault.name_clients([one.client for one in trainings])
    chosen = trainings if fault.at is None else trainings[fault.at : fault.at + 1]
    rounds = {one.base.version + 1 for one in chosen}
    if fault.round is None and len(rounds) == 1:
        fault.of_round(rounds.pop())
