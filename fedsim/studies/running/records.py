"""What a study's folder holds: an index with a line for each run, and the tables of all runs in one file.

The process of the study is the only writer. Tables are appended first, then the line that says where they lie, so that
a kill loses nothing that the index has; a torn last line is no line.
"""

import json
import os
import pickle
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from fedsim.answers.module_values import take_over
from fedsim.answers.opened_files import content_of, opened_files, with_untold
from fedsim.errors import RunError
from fedsim.history import History
from fedsim.history.tables import packed, unpacked
from fedsim.results.state import versions
from fedsim.scenario import Scenario
from fedsim.simulation import EvaluatingAll, Simulation, asked_of
from fedsim.whole_files import replace_file

INDEX: Final = "index.jsonl"
_TABLES: Final = "tables.arrows"
_READ: Final[dict[str, str]] = {}
"""What own parts have read in this process: a later run may have it in memory."""


@dataclass(frozen=True)
class Done:
    """A run that has ended: where its tables lie, or why there are none."""

    run: str
    rounds: int | None = None
    at: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    error: str = ""
    cpu_s: float = 0.0
    events_cpu_s: float = 0.0
    trained: int = 0
    found: int = 0
    memory_bytes: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    data: str | None = None
    opened: Mapping[str, str] = field(default_factory=dict)
    outside: str = ""


Ended = list[tuple[Done, bytes]]


class Records:
    """The index of a study's folder, and the tables that it names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._done: dict[tuple[str, int | None], Done] = {}
        index = folder / INDEX
        for line in index.read_text(encoding="utf-8").splitlines() if index.exists() else ():
            try:
                found = json.loads(line)
                one = Done(**{**found, "remarks": tuple(found["remarks"])})
            except (ValueError, TypeError, KeyError):
                continue
            self._done[one.run, one.rounds] = one

    def forget_changed(self, runs: Iterable[str], *, write: bool) -> list[str]:
        """Forget those of some runs whose own parts may read something else now; return what that is."""
        now, stale, asked = cache(content_of), dict[tuple[str, int | None], set[str]](), set(runs)
        for key, one in self._done.items():
            if one.run in asked:  # modules of other studies need not be loaded
                stale[key] = {path for path, was in one.opened.items() if now(path) != was} | {one.outside} - {""}
        self._done = {key: one for key, one in self._done.items() if not stale.get(key)}
        if write and any(stale.values()):
            kept = b"".join(map(_line, self._done.values()))
            replace_file(self.folder / INDEX, lambda part: part.write_bytes(kept))
        return sorted(set().union(*stale.values()))

    def done(self, run: str, rounds: int | None = None) -> Done | None:
        return self._done.get((run, rounds))

    def lacks(self, run: str, rounds: int | None = None) -> bool:
        return (done := self.done(run, rounds)) is None or bool(done.error)

    def others(self, runs: Iterable[str]) -> int:
        return len({run for run, _ in self._done} - set(runs))

    def longest(self, run: str) -> Done | None:
        found = [one for (digest, _), one in self._done.items() if digest == run and not one.error]
        return max(found, key=lambda one: one.rounds or 0, default=None)

    def add(self, ended: Iterable[tuple[Done, bytes]]) -> list[Done]:
        added = []
        try:
            with (self.folder / _TABLES).open("ab") as tables:
                for one, content in ended:
                    added.append(Done(**{**asdict(one), "at": tables.tell()}))
                    tables.write(content)
                _to_disk(tables)
            index = self.folder / INDEX
            torn = index.exists() and index.stat().st_size > 0 and not index.read_bytes().endswith(b"\n")
            with index.open("ab") as lines:
                lines.write(b"\n" * torn + b"".join(map(_line, added)))
                _to_disk(lines)
        except OSError as error:
            raise RunError(f"{self.folder}: cannot be written: {error.strerror}") from None
        self._done |= {(one.run, one.rounds): one for one in added}
        return added

    def history(self, scenario: Scenario, done: Done) -> History:
        try:
            with (self.folder / _TABLES).open("rb") as file:
                file.seek(done.at)
                tables = unpacked(file, done.sizes)
        except (OSError, pa.ArrowException) as error:
            raise RunError(f"{self.folder / _TABLES}: cannot be read: {error}") from None
        budget = None if scenario.privacy is None else scenario.privacy.total
        return History(
            scenario.name,
            **tables,
            remarks=done.remarks,
            budget=budget,
            find_evaluations=EvaluatingAll(scenario, partial(Simulation)),
            **asked_of(scenario, done.run),
        )


def _line(one: Done) -> bytes:
    return json.dumps(asdict(one)).encode() + b"\n"


def _to_disk(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def run_one(scenario: Scenario, digest: str, rounds: int | None, options: Mapping[str, Any]) -> tuple[Done, bytes]:
    """Run a scenario and return its record with its tables; a run that fails is a record too."""
    import resource

    begun = time.process_time()
    try:
        with opened_files() as opened:
            simulation = Simulation(scenario, **options)
            built = time.process_time()
            history = simulation.run()
        outside = opened.untold(" or ".join(scenario.code()))
        events = time.process_time() - built
        sizes, content = packed(history.tables())
        work = simulation.context.learner.work
        return Done(
            digest,
            rounds,
            sizes=sizes,
            remarks=with_untold(history.remarks, outside),
            cpu_s=round(time.process_time() - begun, 4),
            events_cpu_s=round(events, 4),
            trained=work.trained,
            found=work.trainings_found,
            memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            versions=versions(),
            data=simulation.context.learner.data_digest,
            opened=opened.contents(),
            outside=outside,
        ), content
    except Exception as error:  # the other runs of a study go on; the message is shown at its end
        last = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"
        return Done(digest, rounds, error=text), b""


def run_pack(blobs: Mapping[str, bytes], pack: Sequence["Task"], options: Mapping[str, Any]) -> Ended:
    """Run the tasks of a pack one after the other; each scenario is unpacked once and gets the seed of its task."""
    arms, ended = dict[str, Scenario](), []
    for task in pack:
        if task.arm not in arms:
            arms[task.arm], variables = pickle.loads(blobs[task.arm])  # noqa: S301 - the other end is fedsim too
            take_over(variables)
        scenario = arms[task.arm].model_copy(update={"seed": task.seed})
        done, content = run_one(scenario, task.run, task.rounds, options)
        read = _READ if scenario.code() else {}
        read.update(done.opened)
        ended.append((replace(done, opened=dict(read)), content))
    return ended


@dataclass(frozen=True)
class Task:
    """One run to be made: a variant with a seed, perhaps continued to a number of rounds."""

    run: str
    arm: str
    seed: int
    effort: float
    learns: bool
    rounds: int | None = None
