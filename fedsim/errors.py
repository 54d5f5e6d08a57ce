"""Everything fedsim refuses, as children of one base class.

A message names the field, the value and what is allowed, so that it can be shown to a user as it is.
"""

from collections.abc import Sequence


class FedsimError(Exception):
    """Base class of every error that fedsim raises on purpose."""


class ScenarioError(FedsimError):
    """A scenario, or a value set in it, is not one that can be simulated."""


class ContractError(FedsimError):
    """A part of the user's own does not keep the contract of its kind."""


class PartError(ContractError):
    """A part of the user's own failed, or returned what its contract does not allow.

    The text has five lines once the place in a run is known: what happened, what is allowed (or where it failed), the
    client, the round and the simulated second. What a failing part raised is the ``__cause__``.

    Parameters
    ----------
    what : the part, its member and what happened
    hint : what is allowed, or where the part failed; empty for nothing
    client : whom it is about; None for no single client
    number : of the round in which it happened; None where that is not known, 0 before the first
    time_s : simulated second at which it happened; None where that is not known

    Attributes
    ----------
    what, hint, client, round, time_s : as given, or placed later
    at : place of the wrong element in an answer of one dimension; None for an answer that is wrong as a whole
    """

    def __init__(
        self,
        what: str,
        hint: str = "",
        client: int | None = None,
        number: int | None = None,
        time_s: float | None = None,
    ) -> None:
        # All of it are arguments: SimPy makes a copy of an error of a process from them.
        super().__init__(what, hint, client, number, time_s)
        self.what, self.hint, self.client, self.round, self.time_s = what, hint, client, number, time_s
        self.at: int | None = None

    def place(self, number: int, time_s: float) -> None:
        """Note round and simulated second, unless they are known."""
        if self.time_s is None:
            self.round, self.time_s = number, time_s
            self.args = (self.what, self.hint, self.client, number, time_s)

    def name_client(self, clients: Sequence[int]) -> None:
        """Note the client, unless it is known, where the answer had one element for each of some clients."""
        if self.client is None and self.at is not None and self.at < len(clients):
            self.client = int(clients[self.at])
            self.args = (self.what, self.hint, self.client, self.round, self.time_s)

    def __str__(self) -> str:
        """Return the text: one line, or five where the place in the run is known."""
        if self.time_s is None:
            return f"{self.what}; {self.hint}" if self.hint else self.what
        return "\n".join(
            [
                self.what,
                f"  {self.hint or 'allowed: see the contract'}",
                f"  client: {'none in particular' if self.client is None else self.client}",
                f"  round: {self.round or 'none yet'}",
                f"  simulated second: {self.time_s:.9g}",
            ]
        )


class SelectorError(PartError):
    """A selector broke its contract: it returned something that is no cohort of the candidates."""


class DataError(FedsimError):
    """A data set is missing, incomplete or not in the form it should have."""


class RunError(FedsimError):
    """A run folder cannot be written or read."""


class WriteError(RunError):
    """A file cannot be written now, as on a full disk; a later attempt may succeed."""


class FolderGoneError(RunError):
    """The folder that a file belongs to has vanished."""


class StoreError(FedsimError):
    """A store of results cannot be opened."""


class StoreWarning(UserWarning):
    """A store lost something or keeps nothing more; results are right, and some are computed again."""


class AuditError(FedsimError):
    """An audit found that a run does not conserve bits or time; a fault of fedsim or of a part given to it."""
