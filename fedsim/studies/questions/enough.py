"""Seeds until an interval is narrow enough.

The spread of a first block of pairs decides once how many are run, at least twice as many: a stop that waits for a
narrow interval waits for one that is narrow by chance.
"""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np
from scipy import stats

from fedsim.arrays import FloatArray
from fedsim.studies.metrics import metric
from fedsim.studies.result import StudyResult
from fedsim.studies.running.engine import Engine
from fedsim.studies.study import Study, StudyError
from fedsim.studies.sweeping import run_study

FIRST_BLOCK: Final = 10
"""Pairs of the first block at least."""
_GOAL: Final = re.compile(r"(?P<metric>\S+) within (?P<percent>\d+(\.\d+)?)\s?%")


@dataclass(frozen=True)
class Enough:
    """A metric, and the half width of its interval as a share of the baseline's mean."""

    metric: str
    share: float

    @classmethod
    def of(cls, text: str) -> Self:
        """Return what a text as ``"time_to_80% within 5%"`` asks for."""
        found = _GOAL.fullmatch(text.strip())
        if found is None or not float(found["percent"]):
            raise StudyError(f"until: {text!r} is not allowed; allowed: 'METRIC within 5%'")
        return cls(metric(found["metric"]).name, float(found["percent"]) / 100)


def pairs_needed(differences: FloatArray, width: float, level: float) -> int:
    """Return how many pairs make the half width as small as wanted, by the spread of a first block (Stein 1945)."""
    if width <= 0:
        return differences.size
    quantile = stats.t.ppf((1 + level) / 2, differences.size - 1)
    return max(differences.size, math.ceil(float(quantile * differences.std(ddof=1) / width) ** 2))


def run_until(
    study: Study, folder: Path, engine: Engine, goal: Enough, most: int = 200, *, quiet: bool = False
) -> tuple[StudyResult, str]:
    """Run a study with as many seeds as a goal needs, up to a bound; return it with a sentence on the seeds."""
    first = max(FIRST_BLOCK, len(study.seeds))
    if most < first:
        raise StudyError(f"most: {most} is not allowed; allowed: at least the {first} pairs of the first block")
    if goal.metric not in study.metrics:
        raise StudyError(f"until: {goal.metric} is no metric of the study; allowed: {', '.join(study.metrics)}")
    result = run_study(study.with_seeds(_seeds(study, first)), folder, engine, quiet=quiet)
    needed = max(pairs_needed(of, goal.share * abs(mean), study.level) for of, mean in _blocks(result, goal.metric))
    # A study that ended with its first block would be one whose spread was small by chance.
    count = min(max(needed, 2 * first), most)
    if count > first:
        result = run_study(study.with_seeds(_seeds(study, count)), folder, engine, quiet=quiet)
    said = f"{count} seeds: the spread of the first {first} asks for {needed}"
    bound = "" if needed <= most else f"; stopped at {most}, so that the interval is wider"
    return result, f"{said} ({goal.metric} within {goal.share:.3g} of the baseline's mean){bound}"


def _seeds(study: Study, count: int) -> Sequence[int]:
    return [*study.seeds, *(max(study.seeds) + 1 + i for i in range(count - len(study.seeds)))]


def _blocks(result: StudyResult, name: str) -> list[tuple[FloatArray, float]]:
    """Return the differences of each variant with the baseline's mean; the values themselves where there is one."""
    study, values = result.study, result.values(name)
    waits = metric(name).waits and metric(name).unit in study.horizon
    for key in itertools.product(study.arms, study.seeds):
        if key not in values or math.isnan(values[key].value) or not (values[key].reached or waits):
            why = result.failures.get(key, f"not all runs reach {name}, and the study names no horizon of it")
            raise StudyError(f"until: {key[0]}, seed {key[1]}: {why}; allowed: a horizon, or another metric")
    by = {arm: np.array([values[arm, seed].value for seed in study.seeds]) for arm in study.arms}
    base = by[study.baseline]
    others = [of - base for arm, of in by.items() if arm != study.baseline]
    return [(of, float(base.mean())) for of in others or [base]]
