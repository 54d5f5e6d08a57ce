"""Which models of a run were evaluated, and what is known of those that were not."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import TIE_ULPS
from fedsim.history.tables import CURVES, Tables


class Bounds(NamedTuple):
    """Least and greatest value that a number may have; the same where it is known."""

    least: float
    greatest: float


@dataclass(frozen=True)
class Models:
    """The n models that a server had one after another: from when on, and the row of an evaluation; -1 for none.

    A model that was evaluated again counts as another one from then on.
    """

    start_s: FloatArray
    row: IntArray

    @classmethod
    def of(cls, tables: Tables) -> Self:
        """Return the models of a run; a round without a new model goes on with that of the round before."""
        made = np.append(0, tables.column("rounds", "model_version").astype(np.int64))
        ends_s = np.append(0.0, tables.column("rounds", "end_s"))
        new = np.append(True, made[1:] != made[:-1])
        seen = tables.column("evaluations", "model_version").astype(np.int64)
        version = np.concatenate([made[new], seen])
        start_s = np.concatenate([ends_s[new], tables.column("evaluations", "time_s")])
        rows, first = np.arange(seen.size), np.full(int(version.max()) + 1, -1)
        first[seen[::-1]] = rows[::-1]
        row = np.concatenate([first[made[new]], rows])
        # Of several models at one instant the newest stays, as it was evaluated last.
        order = np.lexsort((row, version, start_s))
        order = order[np.append(np.diff(start_s[order]) > 0, True)]
        other = np.append(True, (np.diff(version[order]) != 0) | (np.diff(row[order]) != 0))
        return cls(start_s[order][other], row[order][other])

    def first_unknown_s(self, after_s: float, until_s: float) -> float:
        """Return from when on the server had a model without an evaluation, between two instants; else the last one.

        The model before all training does not count, which `results.evaluate_start` leaves out on request.
        """
        there = self.start_s[1:][(self.start_s[1:] > after_s) & (self.start_s[1:] < until_s) & (self.row[1:] < 0)]
        return float(there[0]) if there.size else until_s

    def row_at(self, time_s: float) -> int:
        """Return the row of the evaluation of the model that the server had at an instant; -1 without one."""
        return int(self.row[np.searchsorted(self.start_s, time_s, side="right") - 1])


def mean_over_time(tables: Tables, y: str = "accuracy", until_s: float | None = None) -> float | None:
    """Return the area under the curve of a quantity over simulated time, divided by the time.

    The quantity stays as it is until its next value: of the accuracy this is the mean over time of that of the
    server's model. It is taken from the first value on, which is at time 0 with `results.evaluate_start`.

    Parameters
    ----------
    tables : of the run
    y : as of `curve`
    until_s : end of the time; the end of the last round by default

    Returns
    -------
    None without a value before the end, without time between the two, if a value is no number, or if the server had
    models in that time that were not evaluated; `mean_over_time_bounds` then has bounds.
    """
    bounds = mean_over_time_bounds(tables, y, until_s)
    return bounds.least if bounds is not None and bounds.least == bounds.greatest else None


def mean_over_time_bounds(tables: Tables, y: str = "accuracy", until_s: float | None = None) -> Bounds | None:
    """Return the least and the greatest that `mean_over_time` can be, with every model evaluated or not.

    A model that was not evaluated counts as no worse and no better than the evaluated ones before and after it.

    Parameters
    ----------
    tables, y, until_s : as for `mean_over_time`
    """
    start_s, values = tables.curve("time", y)
    ends_s = tables.column("rounds", "end_s")
    end_s = until_s if until_s is not None else float(ends_s[-1]) if ends_s.size else 0.0
    rows = np.arange(values.size)
    if CURVES.get(y, ("evaluations",))[0] == "evaluations":
        models = Models.of(tables)
        begun = np.maximum.accumulate(models.row >= 0)
        start_s, rows = models.start_s[begun], models.row[begun]
    there, known = start_s < end_s, rows >= 0
    if not there.any():
        return None
    at = np.arange(rows.size)
    before = np.maximum.accumulate(np.where(known, at, 0))
    after = np.minimum.accumulate(np.where(known, at, rows.size)[::-1])[::-1]
    one, other = (np.append(values[rows], np.nan)[near[there]] for near in (before, after))
    if np.isnan(one + other).any():
        return None
    lengths_s = np.diff(np.append(start_s[there], end_s))
    least, greatest = (
        float((each(one, other) * lengths_s).sum() / (end_s - start_s[0])) for each in (np.minimum, np.maximum)
    )
    return Bounds(least, greatest)


def final_s(tables: Tables, until_s: float | None) -> float:
    """Return up to which second models count: that of a budget of time, or of the end of the run.

    A round that ends with the budget, up to the rounding of the clock, is in it.
    """
    ends_s = tables.column("rounds", "end_s")
    if until_s is None or not ends_s.size:
        return float(ends_s[-1]) if ends_s.size else 0.0
    slack_s = TIE_ULPS * np.arange(1, ends_s.size + 1) * np.spacing(ends_s)
    near = ends_s[np.abs(ends_s - until_s) <= slack_s]
    return float(near[-1]) if near.size else min(until_s, float(ends_s[-1]))


def value_at(tables: Tables, metric: str, time_s: float) -> float | None:
    """Return a metric of the model that the server had at an instant; None where that is not known or not finite."""
    row = Models.of(tables).row_at(time_s)
    values = tables.curve("time", metric)[1]
    return float(values[row]) if row >= 0 and np.isfinite(values[row]) else None
