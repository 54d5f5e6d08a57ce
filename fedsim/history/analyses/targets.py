"""When a metric reaches a value: the first evaluation that does, and from when on it stays there."""

from typing import NamedTuple

import numpy as np

from fedsim.arrays import BoolArray
from fedsim.errors import RunError
from fedsim.history.analyses.gaps import Models
from fedsim.history.tables import Tables
from fedsim.units import share_of


class Reached(NamedTuple):
    """Simulated seconds at which a metric reaches a value; None for never."""

    first_s: float | None
    after_s: float | None
    held_s: float | None


def time_to(
    tables: Tables, metric: str = "accuracy", *, above: float | str | None = None, below: float | None = None
) -> float | None:
    """Return the simulated second of the first evaluation that reaches a value, None if none does.

    It is 0 if the first model reaches it and was evaluated at time 0.

    Parameters
    ----------
    tables : of the run
    metric : ``"accuracy"``, ``"loss"`` or a metric of the task by its name
    above : smallest value that is good enough; of an accuracy 0.8 or ``"80 %"``
    below : largest value that is good enough; one of the two is given

    Raises
    ------
    RunError
        If the run has no such metric, or the value is none of it.
    """
    return reached(tables, metric, above=above, below=below).first_s


def time_to_accuracy(tables: Tables, target: float | str) -> float | None:
    """Return the simulated second of the first evaluation that reaches an accuracy: `time_to`.

    Parameters
    ----------
    tables : of the run
    target : above 0 and at most 1, or in per cent: 0.8 or ``"80 %"``

    Raises
    ------
    RunError
        If the target is no accuracy.
    """
    return reached(tables, above=target).first_s


def reached(
    tables: Tables,
    metric: str = "accuracy",
    *,
    above: float | str | None = None,
    below: float | None = None,
    held: int = 1,
) -> Reached:
    """Return when evaluations reach a value, and from when on they stay there.

    ``first_s`` is the second of the first evaluation that reaches it, ``held_s`` that of the first of several in a row
    that all do. A model that was not evaluated may have reached it from ``after_s`` on, which is ``first_s`` where
    there is none.

    Parameters
    ----------
    tables, metric, above, below : see `time_to`
    held : evaluations in a row that must reach it for ``held_s``

    Raises
    ------
    RunError
        If the run has no such metric, or a value is not allowed.
    """
    if held < 1:
        raise RunError(f"held: {held!r} is not allowed; it must be at least 1")
    good, time_s = reaching(tables, metric, above=above, below=below), tables.curve("time", metric)[0]
    if not good.any():
        return Reached(None, None, None)
    first = int(good.argmax())
    at_s = float(time_s[first])
    after_s = Models.of(tables).first_unknown_s(float(time_s[first - 1]) if first else -np.inf, at_s)
    start = _first_row(good, held)
    return Reached(at_s, after_s, None if start is None else float(time_s[start]))


def reaching(
    tables: Tables, metric: str = "accuracy", *, above: float | str | None = None, below: float | None = None
) -> BoolArray:
    """Return which evaluations reach a value, shape (n,); several may be of one instant."""
    if (above is None) == (below is None):
        raise RunError(f"above = {above!r} and below = {below!r} are not allowed; it must be one of them")
    name, value = ("above", above) if above is not None else ("below", below)
    limit, values = _limit(name, value, metric), tables.curve("time", metric)[1]
    # A comparison with no number is false: such a model reaches nothing.
    return np.asarray(values >= limit if name == "above" else values <= limit)


def _limit(name: str, value: object, metric: str) -> float:
    try:
        number = share_of(value) if metric == "accuracy" else value
    except ValueError as error:
        raise RunError(f"{name}: {value!r} is not allowed; {error}") from None
    if isinstance(number, bool) or not isinstance(number, int | float | np.number) or not np.isfinite(number):
        allowed = "an accuracy as 0.8 or '80 %'" if metric == "accuracy" else f"a finite number for {metric}"
        raise RunError(f"{name}: {value!r} is not allowed; allowed: {allowed}")
    if metric == "accuracy" and not 0 < number <= 1:
        raise RunError(f"{name}: {value!r} is not allowed; an accuracy is above 0 and at most 1, or '100 %'")
    return float(number)


def _first_row(good: BoolArray, count: int) -> int | None:
    """Return where the first ``count`` values in a row begin that are all good; None if there are none."""
    if count > good.size:
        return None
    rows = np.flatnonzero(np.lib.stride_tricks.sliding_window_view(good, count).all(axis=1))
    return int(rows[0]) if rows.size else None
