"""Metrics of a run by name: seconds, rounds, bits or joules to a target, a quantity at a budget, and fixed ones.

A value that a run did not live to see is a bound and says so: ``reached`` is false, and ``watched`` says how far the
run went.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.errors import FedsimError, suggest
from fedsim.history import History
from fedsim.history.analyses.gaps import final_s, value_at
from fedsim.history.analyses.targets import reaching
from fedsim.history.fairness import judged_by, last_spread
from fedsim.history.tables import SPENDING, TableName, summed

UNITS: Final = ("s", "rounds", "bits", "J")
"""Units of what a run spends, in which targets are waited for and budgets are given."""
_SPENT: Final = {"time": "s", "rounds": "rounds", "bits": "bits", "joules": "J"}
_ROUNDED: Final = 1.0 + 1e-9  # what sums of seconds, bits or joules may be off by
_NUMBER: Final = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_TARGET: Final = re.compile(
    rf"(?P<axis>time|rounds|bits|joules)_to_(?:(?P<percent>{_NUMBER})%|(?P<updates>\d+)updates|"
    rf"(?P<metric>[A-Za-z][\w-]*)(?P<sign>>=|<=)(?P<value>{_NUMBER}))"
)
_BUDGET: Final = re.compile(rf"(?P<metric>[A-Za-z][\w-]*)@(?P<value>{_NUMBER})(?P<unit>s|rounds|bits|J)")
_QUANTILE: Final = re.compile(r"(?P<of>round|participation)_s_p(?P<percent>\d{1,2}(?:\.\d+)?)")
_EXAMPLES: Final = "time_to_80%, bits_to_loss<=0.5, time_to_500updates, accuracy@30s, loss@1e9bits, round_s_p95"


@dataclass(frozen=True)
class Value:
    """A metric of one run: a number, or with ``reached`` false the bound up to which the run was watched.

    ``every`` is the number of rounds between the evaluations that it depends on; 0 where it depends on none.
    """

    value: float
    reached: bool = True
    watched: float = math.inf
    every: int = 0

    def within(self, horizon: float) -> "Value":
        """Return the value up to a horizon, which is the value of a run that was watched so far and is not there."""
        beyond = self.value > horizon * _ROUNDED if self.reached else self.watched * _ROUNDED >= horizon
        return replace(self, value=horizon, reached=False) if beyond else self


@dataclass(frozen=True)
class Metric:
    """A quantity of a run by name; ``better`` is -1 where less is better, 1 where more is, 0 where nothing is said."""

    name: str
    unit: str
    better: int
    of: Callable[[History], Value]
    spends: str = ""
    """The unit in which a run has to be watched far enough; empty where its end is enough."""
    budget: float = 0.0

    @property
    def label(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def waits(self) -> bool:
        """Whether it is spent until a target is reached."""
        return bool(self.spends) and not self.budget


def metric(name: str) -> Metric:
    if found := _TARGET.fullmatch(name):
        unit = _SPENT[found["axis"]]
        if found["updates"]:
            count = int(found["updates"])
            return Metric(name, unit, -1, lambda h: _updates(h, count, unit), unit)
        goal = ("accuracy", ">=", float(found["percent"]) / 100) if found["percent"] else ("", "", 0.0)
        quantity, sign, value = goal if goal[0] else (found["metric"], found["sign"], float(found["value"]))
        if quantity == "accuracy" and not 0 < value <= 1:
            raise FedsimError(f"metric: {name!r} is not allowed; allowed: accuracies above 0, up to 100% or >=1")
        return Metric(name, unit, -1, lambda h: _first(h, quantity, sign, value, unit), unit)
    if found := _BUDGET.fullmatch(name):
        limit, quantity, unit = float(found["value"]), found["metric"], found["unit"]
        if not 0 < limit < math.inf:
            raise FedsimError(f"metric: {name!r} is not allowed; allowed: a budget above 0, and finite")
        better = -1 if quantity == "loss" else 1 if quantity == "accuracy" else 0
        return Metric(name, "", better, lambda h: _at(h, quantity, limit, unit), unit, limit)
    if found := _QUANTILE.fullmatch(name):
        times_s, share = _round_s if found["of"] == "round" else _participation_s, float(found["percent"]) / 100
        return Metric(name, "s", -1, lambda h: times_s(h, share))
    if name in _FIXED:
        return _FIXED[name]
    names = [*_EXAMPLES.split(", "), *_FIXED]
    raise FedsimError(f"metric: {name!r} is not known{suggest(name, names)}; allowed: names as {', '.join(names)}")


def needs(names: Iterable[str], horizon: Mapping[str, float]) -> list[tuple[Metric, float]]:
    """Return the metrics for which a run has to be watched up to a horizon or a budget, and how far."""
    found = [(one, one.budget or horizon.get(one.spends, 0.0)) for one in map(metric, names)]
    return [(one, far) for one, far in found if far]


def spent(history: History, unit: str, at_s: FloatArray) -> FloatArray:
    """Return what a run has spent up to some seconds; bits and joules count when their participation ends.

    Joules are NaN in a run in which no battery has paid anything.
    """
    if unit == "s":
        return at_s
    if unit == "rounds":
        return np.searchsorted(history.column("rounds", "end_s"), at_s, side="right").astype(np.float64)
    columns = ("energy_j",) if unit == "J" else ("uplink_bits", "downlink_bits")
    spending: list[TableName] = [*SPENDING, "edge_participations"] if unit == "bits" else [*SPENDING]
    names = [name for name in spending if name in history.tables()]
    end_s = np.concatenate([history.column(name, "end_s") for name in names for _ in columns])
    amounts = np.concatenate([history.column(name, column) for name in names for column in columns])
    if unit == "J" and not amounts.any():
        return np.full(at_s.shape, math.nan)
    return summed(end_s, np.nan_to_num(amounts), at_s)


def watched(history: History, unit: str) -> float:
    ends_s = history.column("rounds", "end_s")
    return float(spent(history, unit, ends_s[-1:])[0]) if ends_s.size else 0.0


def _first(history: History, quantity: str, sign: str, value: float, unit: str) -> Value:
    far = watched(history, unit)
    if not history.evaluations.num_rows:
        return Value(math.nan, reached=False, watched=math.nan)
    good = reaching(history, quantity, **{"above" if sign == ">=" else "below": value})
    if not good.any():
        return Value(far, reached=False, watched=far, every=_every(history))
    return Value(float(_spent_at(history, quantity, unit)[good.argmax()]), watched=far, every=_every(history))


def _spent_at(history: History, quantity: str, unit: str) -> FloatArray:
    """Return what is spent at each point of a curve; rounds by their numbers, as several may end at one instant."""
    points = history.curve("round" if unit == "rounds" else "time", quantity)[0]
    return points if unit == "rounds" else spent(history, unit, points)


def _every(history: History) -> int:
    """Return the rounds between evaluations: those of the scenario, or most of those in the table."""
    if history.find_scenario is not None:
        return int(history.scenario.describe().get("results", {}).get("evaluate_every", 1))
    return int(np.diff(history.column("evaluations", "round")).max(initial=1))


def _mean(values: FloatArray) -> float:
    return float(values.astype(np.float64).mean()) if values.size else math.nan


def _round_s(history: History, share: float) -> Value:
    durations_s = history.column("rounds", "duration_s")
    return Value(float(np.quantile(durations_s, share)) if durations_s.size else math.nan)


def _participation_s(history: History, share: float) -> Value:
    """Return within which time a share of the participations is delivered; not reached where fewer are."""
    start_s, end_s, outcome = (history.column("participations", name) for name in ("start_s", "end_s", "outcome"))
    took_s = np.where(outcome == "delivered", end_s - start_s, math.inf)
    value = float(np.quantile(took_s, share, method="inverted_cdf")) if took_s.size else math.nan
    return Value(value, reached=math.isfinite(value))


def _updates(history: History, count: int, unit: str) -> Value:
    far = watched(history, unit)
    enough = np.cumsum(history.column("rounds", "delivered")) >= count
    if not enough.any():
        return Value(far, reached=False, watched=far)
    return Value(float(_spent_at(history, "duration", unit)[enough.argmax()]), watched=far)


def _at(history: History, quantity: str, limit: float, unit: str) -> Value:
    far = watched(history, unit)
    values = history.curve("time", quantity)[1]
    there = np.flatnonzero(_spent_at(history, quantity, unit) <= limit * _ROUNDED)
    value = float(values[there[-1]]) if there.size else math.nan
    return Value(value, reached=far * _ROUNDED >= limit, watched=far, every=_every(history))


def _leakage(history: History, name: str) -> float:
    # Without privacy nothing bounds a leakage, and the mean has no value.
    known = ~np.isnan(history.column("rounds", "mean_leakage")[-1:])
    return _mean(history.column("rounds", name)[-1:][known])


def _last_accuracy(history: History) -> float:
    in_time = history.column("evaluations", "time_s") <= final_s(history, history.until_s)
    return _mean(history.column("evaluations", "accuracy")[in_time][-10:])


def _delivered(history: History) -> float | None:
    selected = history.column("rounds", "selected").sum()
    return history.column("rounds", "delivered").sum() / selected if selected else None


def _spread(history: History, name: str) -> float | None:
    found = last_spread(history, judged_by(history))
    return None if found is None else found._asdict()[name]


def _total(history: History, unit: str) -> float:
    return float(spent(history, unit, np.array([math.inf]))[0])


def _fixed(name: str, unit: str, better: int, of: Callable[[History], float | None]) -> Metric:
    return Metric(name, unit, better, lambda h: Value(math.nan if (found := of(h)) is None else float(found)))


_FIXED: Final = {
    one.name: one
    for one in (
        _fixed("mean_round_s", "s", -1, lambda h: _mean(h.column("rounds", "duration_s"))),
        _fixed("simulated_s", "s", -1, lambda h: watched(h, "s")),
        _fixed("rounds", "rounds", 0, lambda h: h.rounds.num_rows),
        _fixed("delivered_share", "", 1, _delivered),
        _fixed("final_accuracy", "", 1, lambda h: value_at(h, "accuracy", final_s(h, h.until_s))),
        _fixed("last_accuracy", "", 1, _last_accuracy),
        _fixed("largest_leakage", "epsilon", -1, lambda h: _leakage(h, "largest_leakage")),
        _fixed("mean_leakage", "epsilon", -1, lambda h: _leakage(h, "mean_leakage")),
        _fixed("worst_decile", "", 1, lambda h: _spread(h, "worst_decile")),
        _fixed("jain", "", 1, lambda h: _spread(h, "jain")),
        _fixed("bits", "bits", -1, lambda h: _total(h, "bits")),
        _fixed("energy_j", "J", -1, lambda h: _total(h, "J")),
    )
}
