"""Metrics of a run by name: seconds, rounds, bits or joules to a target, a quantity at a budget, and fixed ones.

A value that a run did not live to see is a bound and says so: ``reached`` is false, and ``watched`` says how far the
run went.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.errors import FedsimError, suggest
from fedsim.history import History
from fedsim.history.analyses.gaps import value_at
from fedsim.history.fairness import judged_by, last_spread

UNITS: Final = ("s", "rounds", "bits", "J")
"""Units of what a run spends, in which targets are waited for and budgets are given."""
_SPENT: Final = {"time": "s", "rounds": "rounds", "bits": "bits", "joules": "J"}
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
        beyond = self.value > horizon if self.reached else self.watched >= horizon
        return replace(self, value=horizon, reached=False) if beyond else self


@dataclass(frozen=True)
class Metric:
    """A quantity of a run by name; ``better`` is -1 where less is better, 1 where more is, 0 where nothing is said."""

    name: str
    unit: str
    better: int
    of: Callable[[History], Value]
    waits: bool = False
    budget: float = 0.0

    @property
    def spends(self) -> str:
        """The unit in which a run has to be watched far enough; empty where its end is enough."""
        found = _BUDGET.fullmatch(self.name)
        return self.unit if self.waits else found["unit"] if found else ""


def metric(name: str) -> Metric:
    """Return a metric by its name."""
    if found := _TARGET.fullmatch(name):
        unit = _SPENT[found["axis"]]
        if found["updates"]:
            count = int(found["updates"])
            return Metric(name, unit, -1, lambda h: _updates(h, count, unit), waits=True)
        goal = ("accuracy", ">=", float(found["percent"]) / 100) if found["percent"] else ("", "", 0.0)
        quantity, sign, value = goal if goal[0] else (found["metric"], found["sign"], float(found["value"]))
        if quantity == "accuracy" and not 0 < value <= 1:
            raise FedsimError(f"metric: {name!r} is not allowed; allowed: accuracies above 0, up to 100% or >=1")
        return Metric(name, unit, -1, lambda h: _first(h, quantity, sign, value, unit), waits=True)
    if found := _BUDGET.fullmatch(name):
        limit, quantity, unit = float(found["value"]), found["metric"], found["unit"]
        better = -1 if quantity == "loss" else 1 if quantity == "accuracy" else 0
        return Metric(name, "", better, lambda h: _at(h, quantity, limit, unit), budget=limit)
    if found := _QUANTILE.fullmatch(name):
        times_s, share = _round_s if found["of"] == "round" else _participation_s, float(found["percent"]) / 100
        return Metric(name, "s", -1, lambda h: times_s(h, share))
    if name in _FIXED:
        return _FIXED[name]
    raise FedsimError(
        f"metric: {name!r} is not known{suggest(name, _FIXED)}; allowed: names as {_EXAMPLES}, and {', '.join(_FIXED)}"
    )


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
    ends, amounts = [], []
    for name, table in history.tables().items():
        if name in ("participations", "probes", "secure_steps", "edge_participations"):
            for column in columns:
                if column in table.column_names:
                    ends.append(np.asarray(table["end_s"], dtype=np.float64))
                    amounts.append(np.nan_to_num(np.asarray(table[column], dtype=np.float64)))
    end_s, amount = np.concatenate(ends), np.concatenate(amounts)
    if unit == "J" and not amount.any():
        return np.full(at_s.shape, math.nan)
    order = np.argsort(end_s, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(amount[order])])
    return np.asarray(sums[np.searchsorted(end_s[order], at_s, side="right")])


def watched(history: History, unit: str) -> float:
    """Return how far a run went."""
    ends_s = history.column("rounds", "end_s")
    return float(spent(history, unit, ends_s[-1:])[0]) if ends_s.size else 0.0


def _first(history: History, quantity: str, sign: str, value: float, unit: str) -> Value:
    far = watched(history, unit)
    if not history.evaluations.num_rows:
        return Value(math.nan, reached=False, watched=math.nan)
    first_s = history.time_to(quantity, **{"above" if sign == ">=" else "below": value})
    if first_s is None:
        return Value(far, reached=False, watched=far, every=_every(history))
    return Value(float(spent(history, unit, np.array([first_s]))[0]), watched=far, every=_every(history))


def _every(history: History) -> int:
    """Return the rounds between evaluations: those of the scenario, or most of those in the table."""
    if history.find_scenario is not None:
        return int(history.scenario.describe().get("results", {}).get("evaluate_every", 1))
    return int(np.diff(history.column("evaluations", "round")).max(initial=1))


def _known(values: FloatArray, of: Callable[[FloatArray], Any] = np.mean) -> Value:
    return Value(float(of(values)) if values.size else math.nan)


def _round_s(history: History, share: float) -> Value:
    return _known(history.column("rounds", "duration_s"), lambda found: np.quantile(found, share))


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
    end_s = history.column("rounds", "end_s")[np.argmax(enough) :][:1]
    return Value(float(spent(history, unit, end_s)[0]), watched=far)


def _at(history: History, quantity: str, limit: float, unit: str) -> Value:
    far = watched(history, unit)
    at_s, values = history.curve("time", quantity)
    there = np.flatnonzero(spent(history, unit, at_s) <= limit)
    value = float(values[there[-1]]) if there.size else math.nan
    return Value(value, reached=far >= limit, watched=far, every=_every(history))


def _last(name: str) -> Callable[[History], Value]:
    def of(history: History) -> Value:
        values = history.column("rounds", name)[-1:]
        # Without privacy nothing bounds a leakage, and the mean has no value.
        known = values.size and not ("leakage" in name and np.isnan(history.column("rounds", "mean_leakage")[-1]))
        return Value(float(values[0]) if known else math.nan)

    return of


def _final_s(history: History) -> float:
    """Return the second of the final model: the end of the run, or of its budget of time."""
    return min(watched(history, "s"), math.inf if history.until_s is None else history.until_s)


def _final(history: History) -> Value:
    found = value_at(history, "accuracy", _final_s(history))
    return Value(math.nan if found is None else found)


def _last_accuracy(history: History) -> Value:
    in_time = history.column("evaluations", "time_s") <= _final_s(history)
    return _known(history.column("evaluations", "accuracy")[in_time][-10:].astype(np.float64))


def _delivered(history: History) -> Value:
    selected = history.column("rounds", "selected").sum()
    return Value(float(history.column("rounds", "delivered").sum() / selected) if selected else math.nan)


def _spread(name: str) -> Callable[[History], Value]:
    def of(history: History) -> Value:
        found = last_spread(history, judged_by(history))
        return Value(math.nan if found is None else float(found._asdict()[name]))

    return of


def _total(unit: str) -> Callable[[History], Value]:
    return lambda h: Value(float(spent(h, unit, np.array([math.inf]))[0]))


_FIXED: Final = {
    one.name: one
    for one in (
        Metric("mean_round_s", "s", -1, lambda h: _known(h.column("rounds", "duration_s"))),
        Metric("simulated_s", "s", 0, _last("end_s")),
        Metric("rounds", "rounds", 0, lambda h: Value(float(h.rounds.num_rows))),
        Metric("delivered_share", "", 1, _delivered),
        Metric("final_accuracy", "", 1, _final),
        Metric("last_accuracy", "", 1, _last_accuracy),
        Metric("largest_leakage", "epsilon", -1, _last("largest_leakage")),
        Metric("mean_leakage", "epsilon", -1, _last("mean_leakage")),
        Metric("worst_decile", "", 1, _spread("worst_decile")),
        Metric("jain", "", 1, _spread("jain")),
        Metric("bits", "bits", -1, _total("bits")),
        Metric("energy_j", "J", -1, _total("J")),
    )
}
