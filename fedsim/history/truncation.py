"""Tables of an unfinished run of format 1 or 2, cut after the last round that all of them hold.

Such a folder has a file for each table, written one after the other, so that a kill between two leaves participations
that are ahead of the rounds. Later formats say in the state how many rows belong to whole rounds.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def truncated(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the tables without the rows of rounds that are not in the table of rounds."""
    rounds = tables["rounds"]
    last = _largest(rounds, "round")
    cut = {name: table.filter(_upto(table, "round", last)) for name, table in tables.items() if name == "evaluations"}
    edges = tables.get("edge_rounds")
    if edges is None:
        for name in ("participations", "probes"):
            if name in tables:
                cut[name] = tables[name].filter(_upto(tables[name], "round", last))
        return {**tables, **cut}
    end_s = _largest(rounds, "end_s")
    cut["edge_rounds"] = edges = edges.filter(_upto(edges, "end_s", end_s))
    cycles = tables.get("edge_participations")
    if cycles is not None:
        cut["edge_participations"] = cycles.filter(_upto(cycles, "end_s", end_s))
    newest: dict[int, int] = {}
    for edge, number in _pairs(edges):
        newest[edge] = max(number, newest.get(edge, 0))
    for name in ("participations", "probes"):
        if name in tables:
            held = [number <= newest.get(edge, 0) for edge, number in _pairs(tables[name])]
            cut[name] = tables[name].filter(pa.array(held, pa.bool_()))
    return {**tables, **cut}


def _pairs(table: pa.Table) -> Iterator[tuple[int, int]]:
    """Return edge server and round of each row."""
    return zip(table.column("edge").to_pylist(), table.column("round").to_pylist(), strict=True)


def _largest(table: pa.Table, column: str) -> float:
    values = table.column(column).to_numpy()
    return float(values.max()) if values.size else -np.inf


def _upto(table: pa.Table, column: str, last: float) -> pa.Array:
    values: NDArray[np.float64] = np.asarray(table.column(column).to_numpy(), dtype=np.float64)
    return pa.array(values <= last)
