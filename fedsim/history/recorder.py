"""Records a run while it goes on."""

from collections.abc import Callable
from typing import Any

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
    TABLES,
    TableSchema,
)


class Recorder:
    """The rows of a run so far, by the names of their columns in `fedsim.history.schema`.

    A column that may be null can be left out; a name that the schema does not have is refused.

    Parameters
    ----------
    name : name of the scenario

    Attributes
    ----------
    accounts : returns the columns of `ACCOUNTS` up to now; None for none
    settle : records what is still being worked out, before the tables are read
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.accounts: Callable[[], dict[str, NDArray[Any]]] | None = None
        self.settle: Callable[[], None] = _nothing
        self._columns: dict[str, list[dict[str, NDArray[Any]]]] = {"participations": [], "probes": []}
        self._rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES if name not in self._columns}

    def add_participations(self, **columns: NDArray[Any]) -> None:
        """Record the participations of a cohort as columns of `PARTICIPATIONS`, shape (n,), labels as their codes."""
        self._add_columns(PARTICIPATIONS, columns)

    def add_probes(self, **columns: NDArray[Any]) -> None:
        """Record clients that were asked a question as columns of `PROBES`, shape (n,), labels as their codes."""
        self._add_columns(PROBES, columns)

    def add_round(self, **values: Any) -> None:
        """Record a round as a row of `ROUNDS`."""
        self._add_row(ROUNDS, values)

    def add_edge_round(self, **values: Any) -> None:
        """Record a round of an edge server as a row of `EDGE_ROUNDS`."""
        self._add_row(EDGE_ROUNDS, values)

    def add_edge_participation(self, **values: Any) -> None:
        """Record a cycle of an edge server as a row of `EDGE_PARTICIPATIONS`."""
        self._add_row(EDGE_PARTICIPATIONS, values)

    def add_evaluation(self, **values: Any) -> None:
        """Record an evaluation as a row of `EVALUATIONS`."""
        self._add_row(EVALUATIONS, values)

    def history(self) -> History:
        """Return the history up to now."""
        self.settle()
        tables = {name: TABLES[name].from_columns(parts) for name, parts in self._columns.items()}
        tables |= {name: TABLES[name].from_rows(rows) for name, rows in self._rows.items()}
        if self.accounts is not None:
            tables["accounts"] = ACCOUNTS.from_columns([self.accounts()])
        return History(
            self.name, **{n: table for n, table in tables.items() if table.num_rows or not TABLES[n].optional}
        )

    def _add_row(self, schema: TableSchema, values: dict[str, Any]) -> None:
        schema.check(values)
        self._rows[schema.name].append(values)

    def _add_columns(self, schema: TableSchema, columns: dict[str, NDArray[Any]]) -> None:
        absent = schema.check(columns)
        if absent:
            rows = next(iter(columns.values())).size
            columns = columns | {column.name: column.no_value(rows) for column in absent}
        self._columns[schema.name].append(columns)


def _nothing() -> None:
    return
