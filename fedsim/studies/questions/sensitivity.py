"""Which numbers of network, devices and policy move a metric most: each by itself by a factor, or SALib's methods."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fedsim.errors import FedsimError, ScenarioError
from fedsim.scenario import Scenario
from fedsim.studies.metrics import Value, metric
from fedsim.studies.running.engine import Engine
from fedsim.studies.study import Study, StudyError, Variant, flat
from fedsim.studies.sweeping import run_study

METHODS = ("one-at-a-time", "morris", "sobol")


@dataclass(frozen=True)
class Sensitivity:
    """Fields by their effect, greatest first; ``refused`` are those whose value the scenario does not allow to vary."""

    metric: str
    base: float
    table: pa.Table
    refused: Mapping[str, str]


def fields_of(scenario: Scenario) -> dict[str, float]:
    """Return the numbers above 0 of network, devices and policy, by dotted path."""
    return {
        path: value
        for path, value in flat(scenario.describe()).items()
        if path.startswith(("network.", "devices.", "rounds.policy."))
        and type(value) in (int, float)
        and 0 < value < float("inf")
    }


def sensitivity(
    scenario: Scenario,
    folder: Path,
    engine: Engine,
    *,
    name: str,
    factor: float = 1.25,
    method: str = "one-at-a-time",
    rows: int = 8,
    quiet: bool = False,
) -> Sensitivity:
    """Vary each field between its value over a factor and times it; trainings that stay the same are found."""
    if not factor > 1:
        raise StudyError(f"factor: {factor:g} is not allowed; allowed: numbers above 1")
    if method not in METHODS:
        raise StudyError(f"method: {method!r} is not allowed; allowed: {', '.join(METHODS)}")
    fields, refused = _varied(scenario, factor)
    if not fields:
        raise StudyError(f"factor: {factor:g} is not allowed; {next(iter(refused.values()), 'no number can vary')}")

    def run(points: list[dict[str, Any]]) -> list[Value]:
        """Return the metric of each point, and of the base first."""
        variants = [Variant("base", {}), *(Variant(f"{i}", values) for i, values in enumerate(points))]
        study = Study("sensitivity", scenario, tuple(variants), (scenario.seed,), (metric(name).name,))
        result = run_study(study, folder, engine, quiet=quiet)
        if result.failures:
            raise StudyError(f"sensitivity: a run has failed: {next(iter(result.failures.values()))}")
        return [result.values(name)[variant.name, scenario.seed] for variant in variants]

    if method == "one-at-a-time":
        base, table = _each(fields, factor, run)
    else:
        base, table = _by_salib(fields, factor, run, method, rows, scenario.seed)
    return Sensitivity(name, base, table.sort_by([("effect", "descending")]), refused)


def _varied(scenario: Scenario, factor: float) -> tuple[dict[str, float], dict[str, str]]:
    fields, refused = {}, {}
    for path, value in fields_of(scenario).items():
        try:
            for scale in (1 / factor, factor):
                scenario.replace({path: _scaled(value, scale)})
            if _scaled(value, factor) != value != _scaled(value, 1 / factor):
                fields[path] = value
            else:
                refused[path] = f"{value} times {factor:g} is the same whole number"
        except ScenarioError as error:
            refused[path] = str(error)
    return fields, refused


Run = Callable[[list[dict[str, Any]]], list[Value]]


def _each(fields: Mapping[str, float], factor: float, run: Run) -> tuple[float, pa.Table]:
    """Return the change of the metric at the lower and the higher value of each field; null where it is not reached."""
    points = [{path: _scaled(value, scale)} for path, value in fields.items() for scale in (1 / factor, factor)]
    base, *values = run(points)
    if not base.reached:
        raise StudyError("sensitivity: the run itself does not reach its target; allowed: another metric")
    rows = []
    for i, (path, value) in enumerate(fields.items()):
        ends = [one.value - base.value if one.reached else None for one in values[2 * i : 2 * i + 2]]
        effect = max((abs(end) if end is not None else np.inf) for end in ends)
        rows.append({"field": path, "value": float(value), "low": ends[0], "high": ends[1], "effect": float(effect)})
    return base.value, pa.Table.from_pylist(rows)


def _by_salib(
    fields: Mapping[str, float], factor: float, run: Run, method: str, rows: int, seed: int
) -> tuple[float, pa.Table]:
    try:
        sample, analyze = (import_module(f"SALib.{what}.{method}") for what in ("sample", "analyze"))
    except ImportError:
        raise FedsimError("method: SALib is not installed; allowed: pip install 'fedsim-des[salib]'") from None
    paths = list(fields)
    bounds = [[value / factor, value * factor] for value in fields.values()]
    problem = {"num_vars": len(paths), "names": paths, "bounds": bounds}
    more = {} if method == "morris" else {"calc_second_order": False}
    points = sample.sample(problem, rows, seed=seed, **more)
    scaled = [
        {p: _scaled(fields[p], float(x) / fields[p]) for p, x in zip(paths, point, strict=True)} for point in points
    ]
    unlike = list({str(one): one for one in scaled}.values())
    base, *values = run(unlike)
    if not all(value.reached for value in values):
        raise StudyError("sensitivity: not all runs reach the target; allowed: another metric, or a smaller factor")
    known = {str(one): value.value for one, value in zip(unlike, values, strict=True)}
    found = np.array([known[str(one)] for one in scaled])
    given, of = ((points, found), "mu_star") if method == "morris" else ((found,), "ST")
    result = analyze.analyze(problem, *given, seed=seed, **more)
    columns = {"effect": result[of], "low": -result[f"{of}_conf"], "high": result[f"{of}_conf"]}
    numbers = {key: np.asarray(column, dtype=np.float64) for key, column in columns.items()}
    return base.value, pa.table({"field": paths, "value": np.array(list(fields.values()), dtype=np.float64), **numbers})


def _scaled(value: float, scale: float) -> float | int:
    return max(1, round(value * scale)) if isinstance(value, int) else value * scale
