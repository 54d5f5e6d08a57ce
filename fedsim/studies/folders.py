"""Run folders as a study: runs that differ in their seed alone are one variant, named after what differs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fedsim.history import History
from fedsim.results import read_run
from fedsim.results.state import read_state
from fedsim.scenario.file_digests import without_folders
from fedsim.studies.comparing.comparison import Comparison, compare, doubts
from fedsim.studies.metrics import Value, metric
from fedsim.studies.study import Family, StudyError, flat, label, usual

if TYPE_CHECKING:
    from fedsim.scenario import Scenario

Runs = dict[str, dict[int, History]]


def compared(
    folders: Sequence[Path], metrics: Sequence[str], baseline: str, horizon: Mapping[str, float], level: float
) -> tuple[Runs, Comparison]:
    histories = [read_run(folder) for folder in folders]
    for folder, history in zip(folders, histories, strict=True):
        if history.unfinished is not None:
            raise StudyError(f"{folder}: this run is not whole: {history.unfinished}; allowed: finished runs")
    names = arms_of(histories)
    runs, states = grouped(histories, names), map(read_state, folders)
    notes = doubts((name, state.versions, state.data) for name, state in zip(names, states, strict=True))
    wanted = tuple(metrics) or usual(cast("Scenario", histories[0].scenario))
    seeds = tuple(dict.fromkeys(history.scenario.seed for history in histories))

    def values(name: str) -> dict[tuple[str, int], Value]:
        one = metric(name)
        return {(arm, seed): one.of(run) for arm, of in runs.items() for seed, run in of.items()}

    return runs, compare(Family(tuple(runs), seeds, wanted, baseline or names[0], horizon, level, notes), values)


def arms_of(histories: Sequence[History]) -> list[str]:
    """Return the variant of each run, by what differs between the scenarios; of a file its content, not its folder."""
    described = []
    for history in histories:
        scenario = cast("Scenario", history.scenario)
        one = flat(without_folders(scenario.describe(), scenario))
        described.append(one | {f"{path} (content)": digest[:8] for path, digest in scenario.files().items()})
    known = dict.fromkeys(path for one in described for path in one if path not in ("seed", "name"))
    paths = [path for path in known if len({str(one.get(path)) for one in described}) > 1]
    if not paths:
        return [history.name for history in histories]
    whole = [label({path: one.get(path) for path in paths}) for one in described]
    kinds = tuple(path[:-4] for path in paths if path.endswith(".kind"))
    # Options of a part whose kind differs say nothing more, where variants are told apart without them.
    few = [path for path in paths if path.endswith(".kind") or not path.startswith(kinds)]
    short = [label({path: one.get(path) for path in few}) for one in described]
    alike = {name: {all_ for all_, other in zip(whole, short, strict=True) if other == name} for name in short}
    return [name if len(alike[name]) == 1 else all_ for name, all_ in zip(short, whole, strict=True)]


def grouped(histories: Sequence[History], arms: Sequence[str]) -> Runs:
    found: Runs = {}
    for history, arm in zip(histories, arms, strict=True):
        seed = history.scenario.seed
        if seed in found.setdefault(arm, {}):
            raise StudyError(f"{arm}: two runs with seed {seed} are not allowed; allowed: one of each seed")
        found[arm][seed] = history
    return found
