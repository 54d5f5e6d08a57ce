"""FedSUV's five tasks, its methods, and what Tables 2 and 3 of the paper report."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from fedsim import Scenario

HERE: Final = Path(__file__).parent
COHORT: Final = 20
Aggregation = Literal["averaging", "yogi"]
Local = Literal["steps", "epochs"]
REST_ROUNDS: Final = 8
REPORTED: Final = ("fedavg", "safa", "oort", "refl", "fedsuv")
METHODS: Final = (*REPORTED, "fedsuv-rest")
LABELS: Final = {
    "fedavg": "FedAvg",
    "safa": "SAFA",
    "oort": "Oort",
    "refl": "REFL",
    "fedsuv": "FedSUV",
    "fedsuv-rest": f"FedSUV, {REST_ROUNDS} rounds of rest",
}
# FedScale's Yogi, but that batch normalisation's buffers are averaged here and not stepped on.
SERVERS: Final[dict[Aggregation, dict[str, Any]]] = {
    "averaging": {},
    "yogi": {"learning.server": {"kind": "fedyogi", "learning_rate": 0.003, "tau": 1e-8, "initial": 1e-8}},
}


@dataclass(frozen=True)
class Task:
    """A row of Table 1: rounds to the target and accuracy at the end, by aggregation."""

    title: str
    rounds: Mapping[str, list[int]] = field(default_factory=lambda: {name: [] for name in SERVERS})
    accuracy: Mapping[str, list[float]] = field(default_factory=lambda: {name: [] for name in SERVERS})


TASKS: Final[dict[str, Task]] = {}
"""Tasks by the name of their file; numbers in the order of `REPORTED`."""
with (HERE / "paper.csv").open(encoding="utf-8") as _file:
    for _row in csv.DictReader(_file):
        _task = TASKS.setdefault(_row["task"], Task(_row["title"]))
        _task.rounds[_row["aggregation"]].append(int(_row["rounds"]))
        _task.accuracy[_row["aggregation"]].append(float(_row["accuracy"]))


def reported(method: str) -> int:
    """Return the place of a method's numbers: those of FedSUV with rest are FedSUV's."""
    return REPORTED.index(method.removesuffix("-rest"))


def values_of(
    base: Scenario, method: str, aggregation: Aggregation, local: Local, changes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what a method changes of a task's scenario: its selector, and what becomes of late updates."""
    work = base.describe()["learning"]["local"]
    batch, number = int(work["batch_size"]), int(work["steps"])
    epochs = {"learning.local.steps": None, "learning.local.epochs": number} if local == "epochs" else {}
    # What a client passes bounds the number of samples in the methods' utilities.
    passed = {"samples_per_round": batch * number} if local == "steps" else {}
    stale = {"kind": "stale", "weight": "constant", "max_staleness": 5}
    suv = {"kind": "fedsuv", "rho": 0.4, **passed}
    found: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
        "fedavg": ({"kind": "uniform"}, None),
        "safa": ({"kind": "least_involved:LeastInvolved"}, stale),
        "oort": ({"kind": "oort-fedscale", **passed}, None),
        "refl": ({"kind": "refl", "slot_s": 100.0}, {"kind": "stale", "weight": "deviation"}),
        "fedsuv": (suv, None),
        "fedsuv-rest": ({**suv, "rest_rounds": REST_ROUNDS}, None),
    }
    selector, late = found[method]
    own = {"selector": {"cohort": COHORT, **selector}, **({"rounds.late": late} if late else {})}
    return {**epochs, **SERVERS[aggregation], **own, **(changes or {})}


def scenario_of(
    task: str, method: str, aggregation: Aggregation, local: Local, seed: int, changes: Mapping[str, Any] | None = None
) -> Scenario:
    base = Scenario.load(HERE / f"{task}.toml")
    return base.replace({"seed": seed, **values_of(base, method, aggregation, local, changes)})
