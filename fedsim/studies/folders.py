"""Run folders as a study: runs that differ in their seed alone are one variant, named after what differs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedsim.history import History
from fedsim.studies.metrics import Value, metric
from fedsim.studies.study import StudyError, flat, plain


@dataclass(frozen=True)
class GroupedRuns:
    """Runs by variant and seed, and what of them is compared."""

    runs: Mapping[str, Mapping[int, History]]
    metrics: tuple[str, ...] = ()
    baseline: str = ""
    horizon: Mapping[str, float] = field(default_factory=dict)
    level: float = 0.95

    @property
    def arms(self) -> tuple[str, ...]:
        return tuple(self.runs)

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(seed for of in self.runs.values() for seed in of))

    def values(self, name: str) -> dict[tuple[str, int], Value]:
        """Return a metric of each run."""
        one = metric(name)
        return {(arm, seed): one.of(run) for arm, of in self.runs.items() for seed, run in of.items()}


def group(histories: Sequence[History]) -> dict[str, dict[int, History]]:
    """Return runs by what differs between their scenarios, and by seed."""
    scenarios = [flat(history.scenario.describe()) for history in histories]
    for one in scenarios:
        del one["seed"], one["name"]
    paths = [
        path
        for path in dict.fromkeys(p for one in scenarios for p in one)
        if len({_text(one, path) for one in scenarios}) > 1
    ]
    kinds = [path for path in paths if path.endswith(".kind")]
    # Options of a part whose kind differs say nothing more.
    told = [path for path in paths if path in kinds or not any(path.startswith(kind[:-4]) for kind in kinds)]
    found: dict[str, dict[int, History]] = {}
    groups: dict[tuple[str, ...], str] = {}
    for history, one in zip(histories, scenarios, strict=True):
        key = tuple(_text(one, path) for path in paths)
        name = ", ".join(_named(path, one) for path in told) or history.name
        if key not in groups:
            groups[key] = name if name not in groups.values() else ", ".join(_named(path, one) for path in paths)
        seed = history.scenario.seed
        if seed in found.setdefault(groups[key], {}):
            raise StudyError(f"{groups[key]}: two runs with seed {seed} are not allowed; allowed: one of each seed")
        found[groups[key]][seed] = history
    return found


def _text(one: Mapping[str, Any], path: str) -> str:
    return str(one.get(path, "none"))


def _named(path: str, one: Mapping[str, Any]) -> str:
    last = path.rsplit(".", 1)[-1]
    return _text(one, path) if last == "kind" else f"{last}={plain(one.get(path, 'none'))}"
