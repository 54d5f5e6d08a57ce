"""Runs that go on: to a horizon that was named beforehand, or to the budget of a metric, for every run of a study."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fedsim.clock import has_come
from fedsim.history import History
from fedsim.studies.metrics import needs, watched
from fedsim.studies.running.records import Done, Records
from fedsim.studies.study import Point, Study

_LONGEST: Final = 256
"""Times the rounds of a run that it goes on to at most."""
_SPARE: Final = 1.2


def ended_by_time(point: Point, history: History) -> bool:
    """Return whether a run ended at the last second of its scenario, beyond which none goes on."""
    until_s = point.scenario.rounds.until_s
    ends_s = history.column("rounds", "end_s")
    return until_s is not None and ends_s.size > 0 and has_come(until_s, float(ends_s[-1]), ends_s.size)


def longer(study: Study, point: Point, history: History, rounds: int) -> int | None:
    """Return to how many rounds a run has to go on; None where it is long enough or cannot go on further."""
    own: int = point.scenario.rounds.count
    if ended_by_time(point, history) or (rounds > own and history.rounds.num_rows < rounds) or rounds >= _LONGEST * own:
        return None
    factor = 0.0
    for one, wanted in needs(study.metrics, study.horizon):
        far, found = watched(history, one.spends), one.of(history)
        # A run without evaluations never reaches an accuracy.
        if far < wanted and not (one.waits and (found.reached or math.isnan(found.watched))):
            factor = max(factor, wanted / far if far > 0 else 2.0)
    count = math.ceil(min(_LONGEST * own, history.rounds.num_rows * factor * _SPARE))
    return min(_LONGEST * own, max(rounds + 1, count)) if factor else None


def go_on(
    study: Study, points: Sequence[Point], records: Records, run: Callable[[Mapping[str, int]], Sequence[Done]]
) -> None:
    """Let runs go on, by digest, until each one is watched far enough or has ended for good."""
    if not needs(study.metrics, study.horizon):
        return
    while True:
        wanted = {}
        for point in points:
            if (done := records.longest(point.digest)) is None:
                continue
            history = records.history(point.scenario, done)
            count = longer(study, point, history, done.rounds or point.scenario.rounds.count)
            if count is not None and records.done(point.digest, count) is None:
                wanted[point.digest] = count
        if not wanted or all(done.error for done in run(wanted)):
            return
