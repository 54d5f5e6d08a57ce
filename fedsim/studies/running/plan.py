"""What a study would run, with time and memory by a short calibration, and what is there already."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fedsim.learning.executors.cores import usable_cores
from fedsim.studies.running.engine import Engine
from fedsim.studies.running.records import Done, Records, Task
from fedsim.studies.study import Point, Study
from fedsim.units import counted, in_seconds

_ROUNDS: Final = (2, 8)
"""Rounds of the two runs of a calibration, whose difference is free of what a run takes once."""
_MOST: Final = 6
"""Variants that are calibrated; the others are taken as their mean."""


def plan_of(study: Study, folder: Path, engine: Engine) -> list[str]:
    """Return a plan in sentences; two short runs of each variant are made for it, with the store."""
    records = Records(folder)
    records.forget_changed((point.digest for point in study.points), write=False)
    left = [p for p in study.points if records.lacks(p.digest)]
    lines = [
        f"{counted(len(study.points), 'run')}: {counted(len(study.arms), 'variant')} x "
        f"{counted(len(study.seeds), 'seed')}; {len(study.points) - len(left)} are finished in {folder}"
    ]
    if not left:
        return lines
    tried = list({point.variant: point for point in left}.values())[:_MOST]
    ended = _calibrated(tried, engine)
    seconds: dict[str, float] = {}
    for point in tried:
        short, long = (ended[point.digest, count] for count in _ROUNDS)
        if short.error or long.error:
            lines.append(f"{point.variant}: fails: {short.error or long.error}")
            continue
        a_round = max(0.0, long.cpu_s - short.cpu_s) / (_ROUNDS[1] - _ROUNDS[0])
        seconds[point.variant] = max(0.0, short.cpu_s - _ROUNDS[0] * a_round) + a_round * point.scenario.rounds.count
    if not seconds:
        return lines
    mean = sum(seconds.values()) / len(seconds)
    total = sum(seconds.get(point.variant, mean) for point in left)
    jobs = min(engine.jobs or usable_cores(), len(left))
    known = [one for one in ended.values() if not one.error]
    memory = max(one.memory_bytes for one in known)
    wall = f"{_time(total / jobs)} with {counted(jobs, 'job')}"
    lines.append(f"left: {counted(len(left), 'run')}, about {_time(total)} of processor, {wall}")
    lines.append(f"memory: about {memory / 1e9:.2g} GB a job, {jobs * memory / 1e9:.2g} GB together")
    if any(one.trained or one.found for one in known):
        found, all_ = sum(one.found for one in known), sum(one.trained + one.found for one in known)
        lines.append(f"store: {found} of {all_} trainings of the calibration's runs were there")
    return lines


def _calibrated(points: Sequence[Point], engine: Engine) -> dict[tuple[str, int | None], Done]:
    """Run the first rounds of some points one after the other, and return what they took."""
    with TemporaryDirectory(prefix="fedsim-plan-") as place:
        tasks, arms = [], {}
        for point in points:
            for count in _ROUNDS:
                arm = f"{point.variant} / {count}"
                arms[arm] = point.scenario.replace({"rounds.count": count})
                tasks.append(Task(point.digest, arm, point.seed, 1.0, learns=True, rounds=count))
        ended: list[Done] = []
        # One job: the second run of a variant finds what the first one has imported.
        replace(engine, jobs=1).run(tasks, arms, Records(Path(place)), lambda added, _: ended.extend(added))
        return {(one.run, one.rounds): one for one in ended}


def _time(seconds: float) -> str:
    scale, unit = (1, "s") if seconds < 100 else (60, "min") if seconds < 6000 else (3600, "h")
    return f"{in_seconds(seconds / scale, 2)} {unit}"
