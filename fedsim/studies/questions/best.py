"""Which values do best: a search over fields of a scenario, for one metric or several (optuna; SciPy without)."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.scenario import Scenario
from fedsim.studies.metrics import metric
from fedsim.studies.running.engine import Engine
from fedsim.studies.study import Study, StudyError, Variant, at
from fedsim.studies.sweeping import run_study

_NUMBER = r"(-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)"
_RANGE = re.compile(rf"{_NUMBER}\.\.{_NUMBER}")
_TOGETHER = 4
"""Trials that are run side by side; each search step knows those before."""
_NEVER = 1e30
"""What a run that does not get there counts for the search."""
Evaluate = Callable[[Sequence[Mapping[str, Any]]], list[tuple[float, ...]]]


@dataclass(frozen=True)
class Over:
    """A field of a scenario, and the range or the list of its values; a whole number where the scenario's is one."""

    path: str
    low: float = 0.0
    high: float = 0.0
    choices: tuple[Any, ...] = ()
    whole: bool = False

    @classmethod
    def of(cls, scenario: Scenario, path: str, values: str | Sequence[Any]) -> "Over":
        """Return what ``2..20``, or a list of values, means for a field."""
        if not isinstance(values, str):
            return cls(path, choices=tuple(values))
        found = _RANGE.fullmatch(values)
        if not found or not float(found[1]) < float(found[2]) < math.inf:
            raise StudyError(f"over {path}: {values!r} is not allowed; allowed: LOW..HIGH, or a list of values")
        now = at(scenario.describe(), path)
        whole = isinstance(now, int) if now is not None else "." not in found[1]
        low, high = (math.ceil(float(found[1])), math.floor(float(found[2]))) if whole else map(float, found.groups())
        if low > high:
            raise StudyError(f"over {path}: {values!r} is not allowed; allowed: a range with a whole number")
        return cls(path, low, high, whole=whole)

    def at(self, share: float) -> Any:
        """Return the value at a share from 0 to 1 of the list, or of the range; over two decades by its logarithm."""
        if self.choices:
            return self.choices[min(len(self.choices) - 1, int(share * len(self.choices)))]
        if self.whole:
            return int(self.low + min(self.high - self.low, int(share * (self.high - self.low + 1))))
        if self.low > 0 and self.high / self.low >= 100:
            return self.low * (self.high / self.low) ** share
        return self.low + share * (self.high - self.low)


@dataclass(frozen=True)
class Trial:
    """Values that were tried, what is said of their first run, and means of metrics; infinite if a run gets nowhere."""

    values: Mapping[str, Any]
    means: tuple[float, ...]
    notes: tuple[str, ...] = ()


def best(
    scenario: Scenario,
    over: Sequence[Over],
    metrics: Sequence[str],
    folder: Path,
    engine: Engine,
    *,
    trials: int = 20,
    seeds: int = 3,
    tell: Callable[[Trial], None] = lambda _: None,
) -> tuple[list[Trial], list[Trial]]:
    """Return trials in their order, and those that no other one beats; a run short of a target never reaches it."""
    names = tuple(metric(name).name for name in metrics)
    signs = [-1.0 if metric(name).better > 0 else 1.0 for name in names]
    if not over or not names:
        raise StudyError("best: a field to search over and a metric are needed")
    for name in names:
        if not metric(name).better:
            raise StudyError(f"best: of {name} it is not known whether less or more is better; allowed: another metric")
    if len({one.path for one in over}) < len(over):
        raise StudyError(f"best: {', '.join(one.path for one in over)} is not allowed; allowed: each field once")
    numbers = tuple(range(scenario.seed, scenario.seed + seeds))
    done: dict[str, Trial] = {}

    def evaluate(some: Sequence[Mapping[str, Any]]) -> list[tuple[float, ...]]:
        """Run values side by side, and return the means of each that are to become small."""
        new = {str(dict(values)): dict(values) for values in some if str(dict(values)) not in done}
        if new:
            variants = tuple(Variant(key, values) for key, values in new.items())
            result = run_study(Study("best", scenario, variants, numbers, names), folder, engine, quiet=True)
            for (name, _), why in result.failures.items():
                raise StudyError(f"best: {name}: {why}")
            for key, values in new.items():
                found = [[result.values(name)[key, seed] for seed in numbers] for name in names]
                means = (np.mean([v.value for v in of]) if all(v.reached for v in of) else math.inf for of in found)
                done[key] = Trial(values, tuple(map(float, means)), tuple(result[key, numbers[0]].notes))
                tell(done[key])
        small = [np.multiply(signs, done[str(dict(values))].means) for values in some]
        return [tuple(np.where(np.isfinite(of), of, _NEVER).tolist()) for of in small]

    _search(over, evaluate, trials, len(names), scenario.seed)
    tried = list(done.values())
    return tried, _front(tried, signs)


def _search(over: Sequence[Over], evaluate: Evaluate, trials: int, metrics: int, seed: int) -> None:
    """Search by shares of ranges: optuna; without it by rectangles (DIRECT), or evenly for several metrics (Halton)."""

    def values(shares: Iterable[float]) -> dict[str, Any]:
        return {one.path: one.at(float(share)) for one, share in zip(over, shares, strict=True)}

    def single(shares: FloatArray) -> float:
        return evaluate([values(shares)])[0][0]

    try:
        import optuna
    except ImportError:
        from scipy import optimize, stats

        if metrics > 1:
            evaluate([values(shares) for shares in stats.qmc.Halton(len(over), seed=seed).random(trials)])
        else:
            box = optimize.Bounds([0.0] * len(over), [1.0] * len(over))
            optimize.direct(single, box, maxfun=trials)
        return
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(sampler=sampler, directions=["minimize"] * metrics)
    for begin in range(0, trials, _TOGETHER):
        asked = [study.ask() for _ in range(min(_TOGETHER, trials - begin))]
        found = evaluate([values(_share(trial, one) for one in over) for trial in asked])
        for trial, means in zip(asked, found, strict=True):
            study.tell(trial, means)


def _share(trial: Any, one: Over) -> float:
    if not one.choices:
        return float(trial.suggest_float(one.path, 0.0, 1.0))
    count = len(one.choices)
    return (int(trial.suggest_categorical(one.path, range(count))) + 0.5) / count


def _front(trials: Sequence[Trial], signs: Sequence[float]) -> list[Trial]:
    there = [trial for trial in trials if np.isfinite(trial.means).all()]
    points = np.array([np.multiply(signs, trial.means) for trial in there])
    beaten = [(np.all(points <= one, axis=1) & np.any(points < one, axis=1)).any() for one in points]
    return [trial for trial, by in zip(there, beaten, strict=True) if not by]
