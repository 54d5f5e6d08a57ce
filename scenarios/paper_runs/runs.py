"""Runs of a paper's experiment: a study whose variants are the methods, so that what has ended is found again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedsim import Scenario, Study
from fedsim.history import History
from fedsim.studies.running.engine import Engine
from fedsim.studies.running.records import Records
from fedsim.studies.sweeping import run_study

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Ended:
    """What has ended of an experiment, by method and in the order of the seeds, and why the rest has not."""

    base: Scenario
    runs: Mapping[str, Sequence[History]]
    cpu_s: Mapping[str, float]
    failures: Sequence[str]

    def told(self) -> list[str]:
        """Return the lines of a page about runs that are missing."""
        return [f"Missing (`fedsim data` tells where data are to be had): {why}\n" for why in self.failures]


def scaled(scenario: Scenario, scale: float) -> Scenario:
    """Return the first part of a run: as many rounds as a share of its own says, at least one."""
    if not 0.0 < scale <= 1.0:
        raise ValueError(f"scale: {scale!r} is not allowed; it must be above 0 and at most 1")
    return scenario.replace({"rounds.count": max(1, round(scale * scenario.rounds.count))})


def run_methods(
    base: Scenario, methods: Mapping[str, Values], seeds: Iterable[int], folder: Path, engine: Engine
) -> Ended:
    """Run what a folder lacks of an experiment; a run that fails, as its data are absent, stops no other."""
    study = Study.of(base, variants=methods, seeds=list(seeds), name=folder.name)
    found, records = run_study(study, folder, engine), Records(folder)
    runs: dict[str, list[History]] = {}
    cpu_s: dict[str, float] = {}
    for point in study.points:
        done = records.done(point.digest)
        if done is not None and not done.error:
            runs.setdefault(point.variant, []).append(found[point.variant, point.seed])
            cpu_s[point.variant] = cpu_s.get(point.variant, 0.0) + done.cpu_s
    return Ended(
        study.base, {arm: runs[arm] for arm in study.arms if arm in runs}, cpu_s, sorted(set(found.failures.values()))
    )
