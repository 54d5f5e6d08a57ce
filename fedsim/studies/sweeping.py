"""Running a study: what is finished is found by its digest, and the rest is run side by side."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedsim.errors import FedsimError
from fedsim.results.lock import FolderLock
from fedsim.scenario import Scenario
from fedsim.studies.result import STUDY, StudyResult
from fedsim.studies.running.engine import Engine
from fedsim.studies.running.records import Done, Records, Task
from fedsim.studies.running.watching import go_on
from fedsim.studies.study import Point, Study, StudyError
from fedsim.whole_files import replace_file


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
    what = {"grid": grid, "zipped": zipped, "variants": variants, "seeds": seeds, "metrics": metrics}
    what |= {"baseline": baseline, "horizon": horizon, "level": level, "name": name}
    given = {key: value for key, value in what.items() if value not in (None, "", ())}
    if isinstance(base, Study) and given:
        raise StudyError(f"sweep: {', '.join(given)} beside a study is not allowed; allowed: the study's own")
    study = base if isinstance(base, Study) else Study.of(base, **given)
    engine = Engine(on, jobs, store, data_dir, executor, device)
    folder = Path(out) if out is not None else Path("studies") / study.name
    return run_study(study, folder, engine, quiet=quiet)


def run_study(study: Study, folder: Path, engine: Engine, *, quiet: bool = False) -> StudyResult:
    """Run what a folder lacks of a study, and return the study as it is then."""
    points = study.points
    folder.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(folder)
    lock.acquire()
    try:
        _write_study(study, folder)
        records = Records(folder)
        progress = Progress(len(points), quiet=quiet)
        progress.note(records.others(point.digest for point in points), folder)
        _run(points, {}, records, engine, progress)
        by_key = {(point.variant, point.seed): point for point in points}

        def continued(wanted: Mapping[tuple[str, int], int]) -> Sequence[Done]:
            some = [by_key[key] for key in wanted]
            counts = {by_key[key].digest: count for key, count in wanted.items()}
            return _run(some, counts, records, engine, Progress(len(some), "longer runs", quiet=quiet))

        go_on(study, points, records, continued)
        result = StudyResult(study, folder, records)
        result.write_index()
        return result
    finally:
        lock.release()


def _run(
    points: Sequence[Point], counts: Mapping[str, int], records: Records, engine: Engine, progress: "Progress"
) -> Sequence[Done]:
    """Run points that the records lack, each to its own end or to a number of rounds."""
    tasks: list[Task] = []
    arms: dict[str, Scenario] = {}
    for point in points:
        count = counts.get(point.digest)
        done = records.done(point.digest, count)
        if done is not None and not done.error:
            continue
        arm, scenario = point.variant, point.scenario
        if count is not None:
            arm = f"{arm} / {count}"
            free = {"rounds.count": count, "rounds.target_accuracy": None, "rounds.target": None}
            scenario = scenario.replace(free) if arm not in arms else arms[arm]
        arms.setdefault(arm, scenario)
        scale = 1 if count is None else count / point.scenario.rounds.count
        tasks.append(Task(point.digest, arm, point.seed, point.effort * scale, point.learns, count))
    progress.begin(len(points) - len(tasks))
    ended: list[Done] = []

    def after(added: Sequence[Done], share: float) -> None:
        ended.extend(added)
        progress.show(added, share)

    try:
        engine.run(tasks, arms, records, after)
    finally:
        progress.end()
    return ended


def _write_study(study: Study, folder: Path) -> None:
    try:
        text = study.to_toml()
    except FedsimError as error:
        text = f"# {error}\n"
    replace_file(folder / STUDY, lambda part: part.write_text(text, encoding="utf-8"))


class Progress:
    """Runs that have ended, those that failed, and the time left, on a line of standard error."""

    def __init__(
        self, runs: int, what: str = "runs", *, quiet: bool = False, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._runs, self._what, self._quiet, self._clock = runs, what, quiet, clock
        self._ended = self._failed = self._found = 0
        self._begun_s = clock()

    def begin(self, found: int) -> None:
        """Say how many runs the folder has already."""
        self._found = self._ended = found
        self._begun_s = self._clock()
        if found and not self._quiet and found < self._runs:
            sys.stderr.write(f"{found} of {self._runs} {self._what} were finished before\n")

    def note(self, others: int, folder: Path) -> None:
        """Say how many runs of a folder are of other studies, or of this one before its base or its files changed."""
        if others and not self._quiet:
            sys.stderr.write(
                f"{folder} has {others} runs of another base, variants or seeds, which do not count here\n"
            )

    def show(self, added: Sequence[Done], share: float) -> None:
        """Say what has ended; a failure has a line of its own."""
        self._ended += len(added)
        self._failed += sum(bool(one.error) for one in added)
        if self._quiet:
            return
        for one in added:
            if one.error:
                sys.stderr.write(f"{self._start}a run has failed: {one.error}\n")
        if sys.stderr.isatty():
            left_s = (self._clock() - self._begun_s) * (1 - share) / share
            text = f"{self._ended} of {self._runs} {self._what}, about {left_s:,.0f} s left"
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    def end(self) -> None:
        if not self._quiet and self._ended > self._found:
            failed = f", {self._failed} failed" if self._failed else ""
            seconds = self._clock() - self._begun_s
            sys.stderr.write(f"{self._start}{self._ended} of {self._runs} {self._what} in {seconds:,.1f} s{failed}\n")

    @property
    def _start(self) -> str:
        return "\r\x1b[K" if sys.stderr.isatty() else ""
