"""Everything fedsim refuses, as children of one base class.

A message names the field, the value and what is allowed, so that it can be shown to a user as it is.
"""

import difflib
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # errors are at hand before anything heavy is loaded
    import numpy as np
    from numpy.typing import NDArray

TRACEBACKS: Final = "FEDSIM_TRACEBACK"
"""Name of an environment variable: with any value but 0, whole tracebacks are printed."""
_CLIENTS_SHOWN: Final = 5


def tracebacks_wanted() -> bool:
    """Return whether the user wants whole tracebacks of errors."""
    return os.environ.get(TRACEBACKS, "0") not in ("", "0")


def suggest(name: str, allowed: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest allowed name, or nothing."""
    close = difflib.get_close_matches(name, list(allowed), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


class FedsimError(Exception):
    """Base class of every error that fedsim raises on purpose; its text names the value and what is allowed.

    Attributes
    ----------
    failure : what a part of the user's own has raised, where `fedsim.answers.ShortTraceback` has cut the traceback
    origin : the whole traceback as text, where it has been cut

    Examples
    --------
    >>> from fedsim import Scenario
    >>> try:
    ...     Scenario.load("scenarios/quickstart.toml").replace({"rounds.count": 0})
    ... except FedsimError as error:
    ...     print(error)
    rounds.count: 0 is not allowed; input should be greater than or equal to 1
    """

    failure: BaseException | None = None
    origin: str = ""


class ScenarioError(FedsimError):
    """A scenario, or a value set in it, is not one that can be simulated."""


class ContractError(FedsimError):
    """A part of the user's own does not keep the contract of its kind."""


class PartError(ContractError):
    """A part of the user's own failed, or returned what its contract does not allow.

    The text has five lines: what happened, what is allowed (or where it failed), the client, the round and the
    simulated second. What a failing part raised is the ``__cause__``, and after `fedsim.simulate` the ``failure``.
    """

    def __init__(
        self,
        what: str,
        hint: str = "",
        client: int | None = None,
        number: int | None = None,
        time_s: float | None = None,
        clients: tuple[int, ...] = (),
        of: int = 0,
    ) -> None:
        # All of it are arguments: SimPy makes a copy of an error of a process from them.
        super().__init__(what, hint, client, number, time_s, clients, of)
        self.what, self.hint, self.client, self.round, self.time_s = what, hint, client, number, time_s
        self.clients, self.of = clients, of
        self.at: int | None = None

    def place(self, number: int, time_s: float) -> None:
        """Note round and simulated second, unless they are known."""
        if self.time_s is None:
            self.round, self.time_s = number if self.round is None else self.round, time_s
            self._keep()

    def of_round(self, number: int) -> None:
        """Note the round that the work belongs to, which may run later."""
        self.round = number
        self._keep()

    def name_clients(self, clients: "Sequence[int] | NDArray[np.int64]") -> None:
        """Note the clients that the call was about, unless they are known."""
        if self.client is not None or self.clients or not len(clients):
            return
        if len(clients) == 1:
            self.client = int(clients[0])
        elif self.at is not None and self.at < len(clients):
            self.client = int(clients[self.at])
        else:
            self.clients, self.of = tuple(int(one) for one in clients[:_CLIENTS_SHOWN]), len(clients)
        self._keep()

    def rename_clients(self, ids: "NDArray[np.int64]") -> None:
        """Replace each client that is noted, a position among some clients, by its id."""
        inside = [one for one in (self.client, *self.clients) if one is not None and 0 <= one < ids.size]
        if self.client is not None and self.client in inside:
            self.client = int(ids[self.client])
        self.clients = tuple(int(ids[one]) for one in self.clients if one in inside)
        self._keep()

    def in_a_line(self) -> str:
        """Return what happened and what is allowed."""
        return f"{self.what}; {self.hint}" if self.hint else self.what

    def __str__(self) -> str:
        """Return the text of five lines; one for what fails in a check outside a run, where no more is known."""
        if self.args[1:] == ("", None, None, None, (), 0):
            return self.what
        some = f"one of {self.of}: {', '.join(map(str, self.clients))}{', ...' if self.of > len(self.clients) else ''}"
        client = (some if self.clients else "none is named in the call") if self.client is None else self.client
        clock = "none, the clock has not begun" if self.time_s is None else f"{self.time_s:.9g}"
        return "\n".join(
            [
                self.what,
                f"  {self.hint or 'allowed: what fedsim/answers/README.md says'}",
                f"  client: {client}",
                f"  round: {self.round or 'before the first'}",
                f"  simulated second: {clock}",
            ]
        )

    def _keep(self) -> None:
        self.args = (self.what, self.hint, self.client, self.round, self.time_s, self.clients, self.of)


class SelectorError(PartError):
    """A selector broke its contract: it returned something that is no cohort of the candidates."""


class StepError(FedsimError):
    """A call of a testbed that its scenario, its clock or the calls before do not allow; nothing has happened."""


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


class DistrustError(StoreError):
    """A store gives other results than a computation; none of them is found any more."""


class StoreWarning(UserWarning):
    """A store lost something or keeps nothing more; results are right, and some are computed again."""


class AuditError(FedsimError):
    """An audit found that a run does not conserve bits or time; a fault of fedsim or of a part given to it."""
