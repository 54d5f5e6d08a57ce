"""Running a study: what is finished is found by its digest, and the rest is run side by side."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, TextColumn

from fedsim.results.lock import FolderLock
from fedsim.scenario import Scenario
from fedsim.studies.result import STUDY, StudyResult
from fedsim.studies.running.engine import Engine
from fedsim.studies.running.records import Done, Records, Task
from fedsim.studies.running.watching import go_on
from fedsim.studies.study import Point, Study, StudyError
from fedsim.whole_files import make_folder, write_toml


def sweep(
    base: Study | Scenario | str | Path,
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    zipped: Mapping[str, Sequence[Any]] | None = None,
    variants: Mapping[str, Mapping[str, Any]] | None = None,
    seeds: int | Sequence[int] | None = None,
    metrics: Sequence[str] = (),
    baseline: str = "",
    horizon: Mapping[str, float] | float | None = None,
    level: float | None = None,
    name: str | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    store: str | Path | bool | None = None,
    data_dir: str | Path | None = None,
    executor: str | None = None,
    device: str | None = None,
    on: str = "processes",
    quiet: bool = False,
) -> StudyResult:
    """Run variants of a scenario with several seeds side by side, and return what came of it.

    Runs that the folder has are not made again, so that a study that was stopped or killed goes on. A run that fails
    stops no other; see `StudyResult.failures`.

    Parameters
    ----------
    base : a scenario or the path of its file; or a whole `Study`, which takes none of the next nine
    grid, zipped, variants, seeds, metrics, baseline, horizon, level, name : see `Study.of`
    jobs : runs at a time; as many as there are cores by default
    out : folder; ``studies/<name>`` by default
    store, data_dir, executor, device : as for `fedsim.simulate`; all runs share one store
    on : ``"processes"`` of this machine, ``"ray"`` or ``"ray:ADDRESS"``
    quiet : whether nothing is printed on the way

    Returns
    -------
    StudyResult

    Raises
    ------
    StudyError
        If the study is not allowed.
    RunError
        If the folder cannot be used.

    Examples
    --------
    >>> timing = {"learning": {"kind": "none", "model_bits": 1e5, "samples_per_client": 50}, "rounds.count": 5}
    >>> base = Scenario.load("scenarios/quickstart.toml").replace(timing)
    >>> study = sweep(base, {"selector.kind": ["pause", "uniform"]}, seeds=2, out="studies/two", quiet=True)
    >>> study.table("mean_round_s").num_rows, study.failures
    (4, {})
    """
    what: dict[str, Any] = {"grid": grid, "zipped": zipped, "variants": variants, "seeds": seeds, "horizon": horizon}
    what |= {"level": level, "name": name, "metrics": metrics or None, "baseline": baseline or None}
    given = {key: value for key, value in what.items() if value is not None}
    if isinstance(base, Study) and given:
        raise StudyError(f"sweep: {', '.join(given)} beside a study is not allowed; allowed: the study's own")
    study = base if isinstance(base, Study) else Study.of(base, **given)
    folder = Path(out) if out is not None else Path("studies") / study.name
    return run_study(study, folder, Engine(on, jobs, store, data_dir, executor, device), quiet=quiet)


def run_study(study: Study, folder: Path, engine: Engine, *, quiet: bool = False) -> StudyResult:
    """Run what a folder lacks of a study, and return the study as it is then."""
    points = study.points
    make_folder(folder)
    with FolderLock(folder):
        write_toml(study, folder / STUDY)
        records = Records(folder)
        console = Console(stderr=True, quiet=quiet, soft_wrap=True, highlight=False, markup=False)
        if gone := records.forget_changed((point.digest for point in points), write=True):
            what = "runs are made again whose own parts may read something else now"
            console.print(f"{folder}: {what}: {', '.join(gone)}")
        if others := records.others(point.digest for point in points):
            console.print(f"{folder} has {others} runs of another base, variants or seeds, which do not count here")
        _run(points, {}, records, engine, console, "runs")

        def continued(wanted: Mapping[str, int]) -> Sequence[Done]:
            some = [point for point in points if point.digest in wanted]
            return _run(some, wanted, records, engine, console, "longer runs")

        go_on(study, points, records, continued)
        result = StudyResult(study, folder, records)
        result.write_index()
        return result


def _run(
    points: Sequence[Point], counts: Mapping[str, int], records: Records, engine: Engine, console: Console, what: str
) -> Sequence[Done]:
    """Run points that the records lack, each to its own end or to a number of rounds; tell the console of it."""
    tasks: list[Task] = []
    arms: dict[str, Scenario] = {}
    for point in points:
        count = counts.get(point.digest)
        if not records.lacks(point.digest, count):
            continue
        arm, scenario = point.variant, point.scenario
        if count is not None:
            arm = f"{arm} / {count}"
            free = {"rounds.count": count, "rounds.target_accuracy": None, "rounds.target": None}
            scenario = scenario.replace(free) if arm not in arms else arms[arm]
        arms.setdefault(arm, scenario)
        scale = 1 if count is None else count / point.scenario.rounds.count
        tasks.append(Task(point.digest, arm, point.seed, point.effort * scale, point.learns, count))
    ended: list[Done] = []
    found, begun_s, of = len(points) - len(tasks), time.perf_counter(), f"of {len(points)} {what}"
    if 0 < found < len(points):
        console.print(f"{found} {of} were finished before")
    shown = TextColumn("{task.completed} " + of), TextColumn("{task.description}")
    try:
        with Progress(*shown, console=console, transient=True, disable=not console.is_terminal) as bar:
            bar.add_task("", total=len(points), completed=found)

            def after(added: Sequence[Done], share: float) -> None:
                ended.extend(added)
                for one in added:
                    if one.error:
                        console.print(f"a run has failed: {one.error}")
                left_s = (time.perf_counter() - begun_s) * (1 - share) / share
                bar.update(bar.task_ids[0], advance=len(added), description=f"about {left_s:,.0f} s left")

            engine.run(tasks, arms, records, after)
    finally:
        if ended:
            took_s, failed = time.perf_counter() - begun_s, sum(bool(one.error) for one in ended)
            console.print(f"{found + len(ended)} {of} in {took_s:,.1f} s" + f", {failed} failed" * bool(failed))
    return ended
