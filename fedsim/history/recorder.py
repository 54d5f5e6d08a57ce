"""Takes a run down as it goes."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from fedsim.history.history import History
from fedsim.history.schema import (
    ACCOUNTS,
    EDGE_PARTICIPATIONS,
    EDGE_ROUNDS,
    EVALUATIONS,
    PARTICIPATIONS,
    PROBES,
    ROUNDS,
    from_columns,
    from_rows,
)


class Recorder:
    """Takes down a run, round by round, as arrays.

    Parameters
    ----------
    name : name of the scenario

    Attributes
    ----------
    accounts : returns the columns of `ACCOUNTS` up to now; None for none
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.accounts: Callable[[], dict[str, NDArray[Any]]] | None = None
        self._participations: list[dict[str, NDArray[Any]]] = []
        self._probes: list[dict[str, NDArray[Any]]] = []
        self._rounds: list[tuple[Any, ...]] = []
        self._edge_rounds: list[tuple[Any, ...]] = []
        self._edge_participations: list[tuple[Any, ...]] = []
        self._evaluations: list[tuple[Any, ...]] = []

    def add_participations(self, columns: dict[str, NDArray[Any]]) -> None:
        """Take down a cohort: the columns of `PARTICIPATIONS`, outcome and cut_in as their codes."""
        self._participations.append(columns)

    def add_probes(self, columns: dict[str, NDArray[Any]]) -> None:
        """Take down clients that were asked a question: the columns of `PROBES`."""
        self._probes.append(columns)

    def add_round(self, *values: float) -> None:
        """Take down a round: the columns of `ROUNDS` in order."""
        self._rounds.append(values)

    def add_edge_round(self, *values: float) -> None:
        """Take down an edge server's round: its index and the columns of `ROUNDS`."""
        self._edge_rounds.append(values)

    def add_edge_participation(self, *values: float | None) -> None:
        """Take down an edge server's way from the cloud and back: the columns of `EDGE_PARTICIPATIONS` in order."""
        self._edge_participations.append(values)

    def add_evaluation(self, *values: float) -> None:
        """Take down an evaluation: the columns of `EVALUATIONS` in order."""
        self._evaluations.append(values)

    def history(self) -> History:
        """Return what has been taken down so far."""
        return History(
            self.name,
            from_columns(self._participations, PARTICIPATIONS),
            from_rows(self._rounds, ROUNDS),
            from_rows(self._evaluations, EVALUATIONS),
            edge_rounds=from_rows(self._edge_rounds, EDGE_ROUNDS) if self._edge_rounds else None,
            edge_participations=(
                from_rows(self._edge_participations, EDGE_PARTICIPATIONS) if self._edge_participations else None
            ),
            probes=from_columns(self._probes, PROBES) if self._probes else None,
            accounts=None if self.accounts is None else pa.table(self.accounts(), schema=ACCOUNTS),
        )
