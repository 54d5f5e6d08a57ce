"""How evenly a model serves the clients: the spread of its accuracy on each client's local test samples."""

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import RunError
from fedsim.history.tables import Tables

_DECILE: Final = 0.1


class Spread(NamedTuple):
    """Accuracies of clients in a few numbers, each client counted once, whatever its samples."""

    clients: int
    mean: float
    std: float
    variance: float
    worst_decile: float
    best_decile: float
    jain: float

    @classmethod
    def of(cls, accuracy: FloatArray) -> "Spread":
        ascending = np.sort(accuracy)
        few = int(np.ceil(_DECILE * ascending.size))
        variance, squares = float(ascending.var()), float(np.square(ascending).sum())
        return cls(
            clients=ascending.size,
            mean=float(ascending.mean()),
            std=float(np.sqrt(variance)),
            variance=variance,
            worst_decile=float(ascending[:few].mean()),
            best_decile=float(ascending[-few:].mean()),
            jain=float(ascending.sum() ** 2 / (ascending.size * squares)) if squares else 1.0,
        )


def fairness(tables: Tables, y: str = "accuracy") -> pa.Table:
    """Return the spread of a quantity over the clients, one row for each evaluation on local test samples.

    Columns: ``round``, and those of `Spread`, which are null where the value of a client is not finite. Clients without
    samples do not count. The worst tenth is that with the lowest values: of a loss or an error it is the best one.

    Parameters
    ----------
    tables : of the run
    y : ``"accuracy"``, ``"loss"`` or a metric of the task by its name

    Raises
    ------
    RunError
        If the run was not asked for such evaluations, or has no such metric.
    """
    if tables.client_evaluations is None:
        raise RunError(
            f"{tables.name}: has no accuracies of clients; a run with results.evaluate_clients = 'last' or a number "
            "has them"
        )
    number, values = _values(tables, y)
    rounds = np.unique(number)
    rows = [Spread.of(values[number == one]) for one in rounds.tolist()]
    columns = {name: [_finite(row._asdict()[name]) for row in rows] for name in Spread._fields}
    return pa.table({"round": rounds, **columns})


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def last_accuracies(tables: Tables) -> tuple[int, FloatArray]:
    """Return the round of the last evaluation on local test samples, and their accuracies there, shape (n,).

    Without such an evaluation, or with a task that has no accuracy, that is round 0, and no accuracy.
    """
    if tables.client_evaluations is None:
        return 0, np.zeros(0)
    number, accuracy = _values(tables, "accuracy")
    last = int(number.max()) if number.size else 0
    accuracy = accuracy[number == last]
    return last, accuracy[np.isfinite(accuracy)]


def judged_by(tables: Tables) -> str:
    """Return by what clients are compared: accuracy, or the first metric of a task that has none."""
    table = tables.client_evaluations
    if table is None or table.column("accuracy").null_count < table.num_rows:
        return "accuracy"
    return next((str(row[0][0]) for row in table.column("metrics").to_pylist() if row), "accuracy")


def last_spread(tables: Tables, y: str) -> Spread | None:
    """Return the spread of a quantity in the last evaluation on local test samples; None without a finite one."""
    if tables.client_evaluations is None:
        return None
    number, values = _values(tables, y)
    last = values[number == number.max()] if number.size else values
    return Spread.of(last) if last.size and np.isfinite(last).all() else None


def _values(tables: Tables, y: str) -> tuple[IntArray, FloatArray]:
    """Return round and value of all clients with samples; none where no client has the quantity."""
    table: Final = "client_evaluations"
    own = y in ("accuracy", "loss")
    values = tables.column(table, y).astype(np.float64) if own else tables.metric(y, table)
    there = (tables.column(table, "samples") > 0) & ~np.isnan(values).all()
    return tables.column(table, "round")[there], values[there]
