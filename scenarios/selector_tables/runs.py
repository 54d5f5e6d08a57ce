"""Runs that can go on after a kill: a file of results for each seed, with a line for each run that has ended."""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from fedsim import Scenario
from fedsim.learning import Executor, TrainingSetup
from fedsim.simulation import Simulation
from selector_tables.crowds import CROWDS
from selector_tables.methods import methods
from selector_tables.outcomes import Outcome


class Task(NamedTuple):
    table: str
    method: str
    seed: int


class Done(NamedTuple):
    """A run that has ended: what it came to, and the seconds of a processor that it took."""

    task: Task
    outcome: Outcome
    cpu_s: float


def scenario_of(task: Task, seconds: float | None = None) -> Scenario:
    crowd, method = CROWDS[task.table], methods()[task.method]
    chosen = method.selector(crowd, task.seed)
    return crowd.scenario(task.seed, seconds or crowd.seconds, chosen, dict(method.changes))


def run_all(
    tasks: Sequence[Task], folder: Path, workers: int, seconds: float | None = None, store: Path | None = None
) -> Iterator[Done]:
    """Run what has no result in the folder so far, seed by seed, and yield all that are asked for as they come."""
    folder.mkdir(parents=True, exist_ok=True)
    by_seed: dict[int, list[Task]] = {}
    for task in tasks:
        by_seed.setdefault(task.seed, []).append(task)
    run = partial(run_seed, folder=folder, seconds=seconds, store=store)
    if workers <= 1:
        for found in map(run, by_seed.values()):
            yield from found
        return
    with ProcessPoolExecutor(workers) as pool:
        for found in pool.map(run, by_seed.values()):
            yield from found


def run_seed(tasks: Sequence[Task], folder: Path, seconds: float | None, store: Path | None) -> list[Done]:
    """Run what has no result of one seed in this process, and return all results in the order of the tasks."""
    file = folder / f"seed-{tasks[0].seed:03}.jsonl"
    kept = dict(_read(file))
    _write(file, kept.values())
    found = []
    with file.open("a", encoding="utf-8") as lines:
        for task in tasks:
            scenario = scenario_of(task, seconds)
            key = f"{task.table}/{task.method}/{scenario.digest()}"
            if key not in kept:
                kept[key] = _run(task, scenario, store)
                lines.write(json.dumps({"key": key, **kept[key]}) + "\n")
                lines.flush()
            found.append(Done(task, Outcome.from_row(kept[key]["outcome"]), kept[key]["cpu_s"]))
    return found


def _run(task: Task, scenario: Scenario, store: Path | None) -> dict[str, Any]:
    begun_s, clients = time.process_time(), CROWDS[task.table].clients
    # Not `simulate`, which logs that budgets are spent: a column of the table says so.
    history = Simulation(scenario, executor=shared_executor, store=False if store is None else store).run()
    outcome = Outcome.of(history, clients, float(scenario.rounds.until_s or 0.0))
    return {"cpu_s": round(time.process_time() - begun_s, 3), "outcome": outcome.to_row()}


def _read(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the whole lines of a file of results, by their keys."""
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue  # cut by a kill
        yield row["key"], row


def _write(file: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write whole lines in place of a file; the old file stays until the new one is whole."""
    fresh = file.with_suffix(".new")
    fresh.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    fresh.replace(file)


_EXECUTORS: Final[dict[str, Executor]] = {}


def shared_executor(setup: TrainingSetup, device: str) -> Executor:
    """Return the executor of this process for a model, local training and data set: its steps are traced once.

    Initial weights come with each job, so runs of several seeds can share it.
    """
    from fedsim.learning.executors.stacked.executor import StackedExecutor  # torch, in the workers alone

    data = setup.data
    key = f"{setup.model!r} {setup.local!r} {setup.precision} {device} {data.digest}"
    if key not in _EXECUTORS:
        _EXECUTORS[key] = StackedExecutor(setup, device)
    return _EXECUTORS[key]
