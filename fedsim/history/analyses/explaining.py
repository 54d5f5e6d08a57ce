"""Why a run is fast or slow: seconds to a target as rounds times the seconds of a round, by what they were spent on."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fedsim.arrays import FloatArray
from fedsim.clock import TIE_ULPS
from fedsim.history.analyses.targets import reaching
from fedsim.history.columns import SECONDS, RoundColumns, edges_of
from fedsim.history.tables import Tables, has_values

PART_NAMES: Final = {
    "before_s": "before its clients begin",
    "downlink_s": "downlink",
    "compute_s": "work",
    "queue_s": "queue",
    "uplink_s": "uplink",
    "waiting_s": "waiting for the slowest",
    "unmask_s": "unmasking",
}
PARTS: Final = tuple(PART_NAMES)


def explain(
    tables: Tables,
    *others: Tables,
    metric: str = "accuracy",
    above: float | str | None = None,
    below: float | None = None,
) -> pa.Table:
    """Return the seconds to a target as rounds times the mean seconds of a round, one row for each run.

    Columns: ``run``, ``rounds``, ``reached`` (null without the metric), ``seconds``, ``round_s``, and what a mean
    round is spent on: ``before_s`` until its clients began (questions, waits), the mean ``downlink_s``, ``compute_s``,
    ``queue_s`` and ``uplink_s`` of the clients that delivered in it, ``waiting_s`` for the slowest of them or for the
    deadline, and ``unmask_s``, in which secure aggregation takes masks away. They add up to ``round_s``, and are null
    where most updates span several rounds, and with edge servers. A run that never reaches the target has those of all
    its rounds. Where runs evaluate different rounds, evaluations count that all of them have.

    Parameters
    ----------
    tables : of the run
    others : runs beside it
    metric, above, below : the target, as for `time_to`; an accuracy of 0.8 by default

    Raises
    ------
    RunError
        If there is no such metric or target.
    """
    if above is None and below is None:
        above = 0.8
    runs = (tables, *others)
    known = [_with_common_evaluations(run, [other for other in runs if other is not run]) for run in runs]
    return pa.Table.from_pylist([_row(run, metric, above, below) for run in known], _SCHEMA)


_SCHEMA: Final = pa.schema(
    [("run", pa.string()), ("rounds", pa.int32()), ("reached", pa.bool_()), ("seconds", pa.float64())]
    + [(name, pa.float64()) for name in ("round_s", *PARTS)]
)


def _with_common_evaluations(run: Tables, others: Sequence[Tables]) -> Tables:
    """Return a run without the evaluations after rounds that another one had too, and did not evaluate."""
    rounds = run.column("evaluations", "round")
    common = np.ones(rounds.size, dtype=bool)
    for other in others:
        seen = other.column("evaluations", "round")
        if seen.size:
            common &= np.isin(rounds, seen) | (rounds > seen.max())
    return replace(run, evaluations=run.evaluations.filter(pa.array(common)))


def _row(run: Tables, metric: str, above: float | str | None, below: float | None) -> dict[str, Any]:
    """Return the row of a run; what its mean round was spent on up to the target, or in all its rounds."""
    ends_s, known = run.column("rounds", "end_s"), has_values(run, metric)
    good = reaching(run, metric, above=above, below=below) if known else np.zeros(0, dtype=bool)
    number = run.column("evaluations", "round")[good.argmax()] if good.any() else np.inf
    count = int(np.count_nonzero(run.column("rounds", "round") <= number))
    row: dict[str, Any] = {"run": run.name, "rounds": count}
    row["reached"] = bool(good.any()) if known else None
    row["seconds"] = float(ends_s[count - 1]) if count else 0.0
    if not count:
        return row
    row["round_s"] = row["seconds"] / count
    if run.edge_rounds is None and not _overlap(run):
        row |= zip(PARTS, _parts(run, count).tolist(), strict=True)
    return row


def _overlap(run: Tables) -> bool:
    """Return whether most updates went into the model of a later round than that in which their client began."""
    fate = run.column("participations", "fate")
    return bool(np.count_nonzero(fate == "stale-used") > np.count_nonzero(fate == "used"))


def _parts(run: Tables, count: int) -> FloatArray:
    """Return what the first rounds were spent on in the mean, in the order of `PARTS`, which adds up to their mean."""
    rounds = RoundColumns.of(run)
    start_s, end_s = np.append(rounds.start_s, np.nan), np.append(rounds.end_s, np.nan)
    at = rounds.numbered(edges_of(run), run.column("participations", "round").astype(np.int64))
    ended_s = run.column("participations", "end_s")
    # A comparison with a round that was not over is false.
    there = (run.column("participations", "outcome") == "delivered") & (ended_s <= end_s[at]) & (at < count)
    at = at[there]
    each = np.bincount(at, minlength=count)
    begun_s = run.column("participations", "start_s")[there] - start_s[at]
    spent_s = [begun_s, *(run.column("participations", name)[there] for name in SECONDS)]
    means_s = [np.bincount(at, of, minlength=count) / np.maximum(each, 1) for of in spent_s]
    lengths_s = np.diff(np.concatenate([[0.0], rounds.end_s[:count]]))
    # A round begins where the one before has ended, also where the server waited in between.
    means_s[0] = means_s[0] + (rounds.start_s[:count] - (rounds.end_s[:count] - lengths_s))
    unmask_s = (rounds.end_s - rounds.closed_s(run))[:count]
    waiting_s = lengths_s - np.sum(means_s, axis=0) - unmask_s
    parts_s = np.array([of.mean() for of in (*means_s, waiting_s, unmask_s)])
    # What is left of sums of the same seconds is no part of a round.
    return np.where(np.abs(parts_s) <= TIE_ULPS * np.spacing(rounds.end_s[count - 1]), 0.0, parts_s)
