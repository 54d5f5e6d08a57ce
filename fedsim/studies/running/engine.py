"""Which runs a study still needs, in which order and packs, and on which machines."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import cloudpickle

from fedsim.answers.module_values import told
from fedsim.errors import FedsimError
from fedsim.identity import users_own
from fedsim.learning.executors.cores import usable_cores
from fedsim.scenario import Scenario
from fedsim.studies.running.local import in_processes
from fedsim.studies.running.records import Done, Records, Task

_PACK_EFFORT: Final = 20_000.0
"""Participations of a pack of runs about timing only: about two seconds of work."""


@dataclass(frozen=True)
class Engine:
    """Where runs are made, and with what; see `fedsim.sweep` for the fields."""

    on: str = "processes"
    jobs: int | None = None
    store: Any = None
    data_dir: Any = None
    executor: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        if self.on not in {"processes", "ray"} and not self.on.startswith("ray:"):
            raise FedsimError(f"on: {self.on!r} is not allowed; allowed: processes, ray, ray:ADDRESS")
        if self.jobs is not None and self.jobs < 1:
            raise FedsimError(f"jobs: {self.jobs!r} is not allowed; allowed: whole numbers from 1 on")

    def run(
        self,
        tasks: Sequence[Task],
        arms: Mapping[str, Scenario],
        records: Records,
        after: Callable[[Sequence[Done], float], None],
    ) -> None:
        """Run tasks, and add them to the records; ``after`` is called with what has ended and its share of the work."""
        if not tasks:
            return
        read, sent = told(code for scenario in arms.values() for code in users_own(scenario).values())
        blobs = {name: cloudpickle.dumps((arms[name], sent)) for name in {task.arm for task in tasks}}
        options = {"store": self.store, "data_dir": self.data_dir, "executor": self.executor, "device": self.device}
        packs = packs_of(tasks, self.jobs or usable_cores())
        effort = {(task.run, task.rounds): task.effort for task in tasks}
        total, done = sum(effort.values()), 0.0
        if self.on == "processes":
            ended = in_processes(packs, blobs, options, self.jobs)
        else:
            from fedsim.studies.running.on_ray import on_ray

            ended = on_ray(packs, blobs, options, self.on.partition(":")[2], self.jobs)
        try:
            for pack in ended:
                added = records.add((replace(one, opened={**one.opened, **read}), it) for one, it in pack)
                done += sum(effort[one.run, one.rounds] for one in added)
                after(added, done / total)
        finally:
            ended.close()


def packs_of(tasks: Sequence[Task], jobs: int) -> list[list[Task]]:
    """Return tasks in packs, slowest first; a run that learns is a pack by itself, and each job has several packs."""
    packs: list[list[Task]] = []
    room, most = 0.0, min(_PACK_EFFORT, sum(task.effort for task in tasks) / (4 * jobs))
    for task in sorted(tasks, key=lambda one: (not one.learns, -one.effort)):
        if task.learns or not packs or packs[-1][0].learns or room < task.effort:
            packs.append([])
            room = most
        packs[-1].append(task)
        room -= task.effort
    return packs
