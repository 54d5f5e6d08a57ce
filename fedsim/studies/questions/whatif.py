"""The counterfactual beside a run: what changed, when the two part, what was re-used, and what it cost."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedsim.history import History
from fedsim.history.columns import RoundColumns
from fedsim.scenario import Scenario
from fedsim.simulation import Simulation
from fedsim.studies.comparing.why import Why, why
from fedsim.studies.study import StudyError, at, plain
from fedsim.units import in_seconds


@dataclass(frozen=True)
class WhatIf:
    before: History
    after: History
    changes: Mapping[str, tuple[Any, Any]]
    parts_in_round: int | None
    trained: int
    found: int
    cpu_s: float

    @property
    def why(self) -> Why:
        return why({"before": {0: self.before}, "after": {0: self.after}}, "before")[0]

    @property
    def sentences(self) -> list[str]:
        changed = ", ".join(f"{path} {plain(old)} -> {plain(new)}" for path, (old, new) in self.changes.items())
        parted = "All rounds have the same cohorts and outcomes."
        if self.parts_in_round is not None:
            rounds = RoundColumns.of(self.after)
            start_s = rounds.start_s[rounds.round == self.parts_in_round]
            when = f" (second {in_seconds(start_s.min(), 4)})" if start_s.size else ""
            parted = f"The runs part in round {self.parts_in_round}{when}: its cohort or an outcome is another."
        lines, runs, goal = [f"Changed: {changed}.", parted], (self.before, self.after), self.before.goal
        if all(run.evaluations.num_rows for run in runs):
            shown = [run.time_to(**goal.asked) for run in runs]
            words = ["never" if at_s is None else f"{in_seconds(at_s, 4)} s" for at_s in shown]
            lines.append(f"{goal}: {words[0]} before, {words[1]} after.")
        means = [float(run.column("rounds", "duration_s").mean()) for run in runs]
        lines.append(f"Mean round: {in_seconds(means[0], 4)} s before, {in_seconds(means[1], 4)} s after.")
        if self.why.pairs:
            lines.append(self.why.sentence)
        cost = f"It took {in_seconds(self.cpu_s, 2)} s of processor"
        if self.trained or self.found:
            cost += f"; {self.found} of {self.trained + self.found} trainings were found in the store"
        return [*lines, f"{cost}. One pair tells what happened, not how often: fedsim sweep has more seeds."]


def what_if(run: History, values: Mapping[str, Any], **options: Any) -> WhatIf:
    """Run the scenario of a finished run with other values; options are those of `Simulation`."""
    if run.unfinished is not None:
        raise StudyError(f"{run.name}: the run is not whole: {run.unfinished}")
    scenario = Scenario.of(run.scenario.describe())
    changed = scenario.replace(values)
    if changed == scenario:
        raise StudyError(f"{run.name}: {', '.join(values) or 'nothing'} changes nothing; allowed: another value")
    begun = time.process_time()
    simulation = Simulation(changed, **options)
    after = simulation.run()
    cpu_s, work = time.process_time() - begun, simulation.context.learner.work
    old, new = scenario.describe(), changed.describe()
    changes = {path: (at(old, path), at(new, path)) for path in values}
    return WhatIf(run, after, changes, first_apart(run, after), work.trained, work.trainings_found, cpu_s)


def first_apart(one: History, other: History) -> int | None:
    before, after = _outcomes(one), _outcomes(other)
    return next((number for number in sorted({*before, *after}) if before.get(number) != after.get(number)), None)


def _outcomes(run: History) -> dict[int, set[tuple[Any, ...]]]:
    found: dict[int, set[tuple[Any, ...]]] = {}
    columns = ("round", "edge", "client", "draws", "work", "outcome")
    for number, *rest in zip(*(run.participations[name].to_pylist() for name in columns), strict=True):
        found.setdefault(number, set()).add(tuple(rest))
    return found
