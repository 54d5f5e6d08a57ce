"""Errors of a user's own part that name the client and the round."""

from collections.abc import Callable, Sequence

from fedsim.errors import PartError
from fedsim.learning.lineage.asked import Update


class Naming:
    """A block whose errors of own parts are completed by a function."""

    __slots__ = ("_complete",)

    def __init__(self, complete: Callable[[PartError], None]) -> None:
        self._complete = complete

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, PartError):
            self._complete(error)


def of_trainings(updates: Sequence[Update]) -> Naming:
    """Name client and round: the round after the version that the training started from."""

    def complete(fault: PartError) -> None:
        fault.name_clients([one.client for one in updates])
        chosen = updates if fault.at is None else updates[fault.at : fault.at + 1]
        rounds = {one.base.version + 1 for one in chosen}
        if fault.round is None and len(rounds) == 1:
            fault.of_round(rounds.pop())

    return Naming(complete)


def of_training(update: Update) -> Naming:
    def complete(fault: PartError) -> None:
        fault.at = None
        fault.name_clients([update.client])
        if fault.round is None:
            fault.of_round(update.base.version + 1)

    return Naming(complete)


def of_clients(clients: Sequence[int]) -> Naming:
    def complete(fault: PartError) -> None:
        fault.at = None
        fault.name_clients(clients)

    return Naming(complete)


def of_model(version: int) -> Naming:
    def complete(fault: PartError) -> None:
        if fault.round is None:
            fault.of_round(version)

    return Naming(complete)
