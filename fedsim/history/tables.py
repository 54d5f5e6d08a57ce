"""The tables of a run, and what is read from them without an analysis: columns, curves, time to accuracy."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, BinaryIO, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.errors import RunError
from fedsim.inputs.arrow import known_of, numbers_of

X = Literal["time", "round"]
Y = Literal["accuracy", "loss", "leakage", "mean_leakage", "duration", "energy"]
TableName = Literal[
    "participations",
    "rounds",
    "evaluations",
    "edge_rounds",
    "edge_participations",
    "probes",
    "client_evaluations",
    "secure_steps",
    "releases",
    "accounts",
    "clients",
]
CURVES: Final[dict[str, tuple[TableName, str, str]]] = {
    "accuracy": ("evaluations", "time_s", "accuracy"),
    "loss": ("evaluations", "time_s", "loss"),
    "leakage": ("rounds", "end_s", "largest_leakage"),
    "mean_leakage": ("rounds", "end_s", "mean_leakage"),
    "duration": ("rounds", "end_s", "duration_s"),
    "energy": ("rounds", "end_s", "end_s"),
}
"""Table and columns of each quantity: its time and itself; of energies the instants up to which they are summed."""
SPENDING: Final[tuple[TableName, ...]] = "participations", "probes", "secure_steps"

# The tables of one run are small: threads for them would take longer than the work.
_WRITING: Final = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READING: Final = pa.ipc.IpcReadOptions(use_threads=False)


class Goal(NamedTuple):
    metric: str
    value: float
    above: bool = True

    @property
    def asked(self) -> dict[str, Any]:
        return {"metric": self.metric, "above" if self.above else "below": self.value}

    def __str__(self) -> str:
        if self.metric == "accuracy" and self.above:
            return f"{100 * self.value:g} % accuracy"
        return f"{self.metric} of at {'least' if self.above else 'most'} {self.value:g}"


@dataclass(frozen=True)
class Tables:
    """The tables of one run, as Arrow tables with the schemas of `fedsim.history.schema`.

    Attributes
    ----------
    name : name of the scenario
    participations : one row for each client in each round
    rounds : one row for each round; with edge servers, of the cloud
    evaluations : one row for each evaluation of the global model; the first one at time 0 (`results.evaluate_start`)
    edge_rounds : one row for each round of an edge server; None without edge servers
    edge_participations : one row for each cycle of an edge server; None without edge servers
    probes : one row for each client that was asked a question; None if none was
    client_evaluations : one row for each client in each evaluation on local test samples; None if none was made
    secure_steps : one row for each client in each step of secure aggregation; None without
    releases : one row for each private release; None without privacy
    accounts : one row for each client of an audited run; None otherwise
    clients : one row for each client, as it is before the first round; None in the folder of an unfinished run
    target_accuracy : accuracy whose time is stated, `results.target_accuracy`
    target : of another metric, `rounds.target`; None without
    smoothing : window of the means in figures, `results.smoothing`
    """

    name: str
    participations: pa.Table
    rounds: pa.Table
    evaluations: pa.Table
    edge_rounds: pa.Table | None = None
    edge_participations: pa.Table | None = None
    probes: pa.Table | None = None
    client_evaluations: pa.Table | None = None
    secure_steps: pa.Table | None = None
    releases: pa.Table | None = None
    accounts: pa.Table | None = None
    clients: pa.Table | None = None
    target_accuracy: float = field(default=0.8, compare=False, kw_only=True)
    target: Goal | None = field(default=None, compare=False, kw_only=True)
    smoothing: int = field(default=1, compare=False, kw_only=True)

    @property
    def goal(self) -> Goal:
        """What seconds are stated for: the target of another metric, or the accuracy."""
        return Goal("accuracy", self.target_accuracy) if self.target is None else self.target

    def tables(self) -> dict[str, pa.Table]:
        """Return the tables that this run has, by name."""
        return {f.name: table for f in fields(self) if isinstance(table := vars(self)[f.name], pa.Table)}

    def table(self, name: TableName) -> pa.Table:
        """Return a table by its name.

        Parameters
        ----------
        name : of a table that this run has

        Raises
        ------
        RunError
            If this run has no such table.
        """
        found = self.tables().get(name)
        if found is None:
            raise RunError(f"{self.name}: this run has no table {name!r}; it has {', '.join(self.tables())}")
        return found

    def column(self, table: TableName, name: str) -> NDArray[Any]:
        """Return a column as an array of shape (rows,); numbers with a null among them are floats, null as NaN.

        A null among labels is None.

        Parameters
        ----------
        table : name of a table that this run has
        name : of the column

        Raises
        ------
        RunError
            If this run has no such table, or the table no such column.
        """
        found = self.table(table)
        if name not in found.column_names:
            raise RunError(f"{self.name}: {table} has no column {name!r}; its columns: {', '.join(found.column_names)}")
        values = found.column(name)
        if pa.types.is_dictionary(values.type):
            # Arrow gives the last label in the place of a null of a dictionary.
            values = values.cast(values.type.value_type)
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            return numbers_of(values)
        return np.asarray(values.to_numpy())

    def known(self, table: TableName, name: str) -> BoolArray:
        """Return which rows of a column have a value, shape (rows,); one that is no number is a value.

        Parameters
        ----------
        table : name of a table that this run has
        name : of the column
        """
        return known_of(self.tables()[table].column(name))

    def curve(self, x: X = "time", y: Y | str = "accuracy", smoothing: int = 1) -> tuple[FloatArray, FloatArray]:
        """Return one quantity against simulated seconds or rounds, two arrays of the same shape (n,).

        Parameters
        ----------
        x : ``"time"`` (seconds) or ``"round"``
        y : ``"accuracy"``, ``"loss"``, ``"leakage"`` (largest epsilon leaked), ``"mean_leakage"`` (mean over clients),
            ``"duration"`` (of rounds, s), ``"energy"`` (of all clients so far, J), or a metric of the task by its name
        smoothing : window of the causal mean; 1 for none (PAUSE, section V-B, uses 10 for accuracy). The evaluation at
            time 0 is where the curve begins, and enters no mean: it is that of a model without training
        """
        table, time_s, quantity = CURVES.get(y, ("evaluations", "time_s", ""))
        abscissa = self.column(table, time_s if x == "time" else "round").astype(np.float64)
        values = self.column(table, quantity).astype(np.float64) if quantity else self.metric(y)
        if y == "energy":
            return abscissa, self.spent_j(values)
        first = int(np.count_nonzero(self.column(table, "round") == 0))
        return abscissa, np.concatenate([values[:first], causal_mean(values[first:], smoothing)])

    def spending(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return client, end and joules of all that batteries have paid for, participations first; each of shape (n,).

        Questions and steps of secure aggregation come after the participations.

        Raises
        ------
        RunError
            If no battery has paid anything.
        """
        parts = [
            [self.column(name, column) for column in ("client", "end_s", "energy_j")]
            for name in SPENDING
            if name in self.tables()
        ]
        client, end_s, joules = (np.concatenate(column) for column in zip(*parts, strict=True))
        if not joules.any():
            raise RunError(f"{self.name}: no battery has paid anything; allowed: a run with devices.energy")
        return client, end_s, joules

    def spent_j(self, time_s: FloatArray) -> FloatArray:
        """Return the joules of all clients in what has ended by some instants.

        Parameters
        ----------
        time_s : simulated seconds, any shape

        Raises
        ------
        RunError
            If no battery has paid anything.
        """
        return summed(*self.spending()[1:], time_s)

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics of the task beside accuracy alone, sorted; none where it has no others."""
        return sorted({name for row in self.evaluations.column("metrics").to_pylist() for name in dict(row or ())})

    def metric(self, name: str, table: Literal["evaluations", "client_evaluations"] = "evaluations") -> FloatArray:
        """Return a metric of the task at each row of a table of evaluations, shape (n,); NaN where it has none.

        Parameters
        ----------
        name : of the metric: ``"macro-f1"``
        table : ``"evaluations"``, on the test set, or ``"client_evaluations"``, on the samples of clients

        Raises
        ------
        RunError
            If the run has no metric of that name.
        """
        rows = [dict(row or ()) for row in self.tables()[table].column("metrics").to_pylist()]
        known = sorted({key for row in rows for key in row})
        if name not in known:
            raise RunError(
                f"{self.name}: this run has no metric {name!r}; it has {', '.join(['accuracy', 'loss', *known])}"
            )
        return np.array([np.nan if row.get(name) is None else row[name] for row in rows], dtype=np.float64)


def summed(end_s: FloatArray, amounts: FloatArray, time_s: FloatArray) -> FloatArray:
    """Return the sums of the amounts whose ends have come by some instants."""
    order = np.argsort(end_s, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(amounts[order])])
    return np.asarray(sums[np.searchsorted(end_s[order], time_s, side="right")])


def has_values(tables: Tables, y: str) -> bool:
    """Return whether an evaluation has a finite value of a quantity."""
    return bool(tables.evaluations.num_rows) and bool(np.isfinite(tables.curve("time", y)[1]).any())


def packed(tables: Mapping[str, pa.Table]) -> tuple[dict[str, int], bytes]:
    """Return tables as bytes, one behind the other, with the size of each."""
    parts: dict[str, pa.Buffer] = {}
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=_WRITING) as writer:
            writer.write_table(table)
        parts[name] = sink.getvalue()
    return {name: part.size for name, part in parts.items()}, b"".join(memoryview(part) for part in parts.values())


def unpacked(file: BinaryIO, sizes: Mapping[str, int]) -> dict[str, pa.Table]:
    """Return packed tables from where a file stands on."""
    parts = {name: pa.ipc.open_stream(file.read(size), options=_READING) for name, size in sizes.items()}
    return {name: part.read_all() for name, part in parts.items()}


def causal_mean(values: FloatArray, window: int) -> FloatArray:
    """Return the mean of each value and up to ``window - 1`` values before it, shape (n,)."""
    if not values.size:
        return values
    window = min(window, values.size)
    padded = np.concatenate([np.zeros(window - 1), values])
    sums = np.lib.stride_tricks.sliding_window_view(padded, window).sum(axis=1)
    return np.asarray(sums / np.minimum(np.arange(1, values.size + 1), window))
