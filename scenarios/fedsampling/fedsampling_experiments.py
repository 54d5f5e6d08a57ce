"""FedSampling's experiments: their methods and settings, and what the paper reports.

The paper's code has no baselines. Here a baseline asks as many clients as have K samples on average, by the mean size
that the partition aims at. Each does one epoch in batches of 32 with the learning rate of FedSampling, and the server
takes the plain mean of their updates (section 1 of the paper: two samples of one client count a half each).
"""

import csv
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from fedsim import Scenario

sys.path.insert(0, str(Path(__file__).parents[1]))

HERE: Final = Path(__file__).parent
Changes = Mapping[str, Any]
_FILE: Final[dict[str, Any]] = tomllib.loads((HERE / "methods.toml").read_text(encoding="utf-8"))
LABELS: Final[dict[str, str]] = {name: of["label"] for name, of in _FILE["methods"].items()}


@dataclass(frozen=True)
class Experiment:
    title: str
    methods: tuple[str, ...] = tuple(name for name in LABELS if "-weighted" not in name and name != "fixed-ratio")
    settings: Mapping[str, Changes] = field(default_factory=lambda: {"all": {}})
    mean_size: float = 2.0
    drawn: Literal["bars", "lines", "curves"] = "bars"
    axis: str = ""
    stand_in: str = "Fashion-MNIST for MIND"
    """The data here, for those of the paper."""


EXPERIMENTS: Final = {name: Experiment(**of) for name, of in _FILE["experiments"].items()}


def _changes(data: str) -> dict[str, Any]:
    """Return what other data than those of an experiment's file change of its scenario."""
    own = dict(_FILE["data"][data])
    return {**(_changes(own.pop("like")) if "like" in own else {}), **own}


DATA: Final[dict[str, Changes]] = {data: _changes(data) for data in _FILE["data"]}
with (HERE / "paper.csv").open(encoding="utf-8") as _file:
    _ROWS: Final = list(csv.DictReader(_file))
PAPER: Final[dict[str, dict[str, tuple[float, float]]]] = {
    data: {row["method"]: (float(row["macro_f1"]), float(row["accuracy"])) for row in _ROWS if row["data"] == data}
    for data in {row["data"] for row in _ROWS}
}
"""Macro-F1 and accuracy of Table 1 in per cent, by data and method: of Text-CNN, and of the Transformer."""


def scenario_of(name: str, method: str, setting: str = "all", seed: int = 0, data: str = "here") -> Scenario:
    base = base_of(name, data)
    return base.replace({"seed": seed, **values_of(name, method, setting, base)})


def base_of(name: str, data: str = "here", values: Changes | None = None) -> Scenario:
    """Return what all runs of an experiment have in common."""
    return Scenario.load(HERE / f"{name}.toml").replace({**DATA[data], **(values or {})})


def values_of(name: str, method: str, setting: str, base: Scenario) -> dict[str, Any]:
    """Return what a setting and a method change: who takes part, and what the clients and the server do."""
    experiment, samples = EXPERIMENTS[name], int(base.describe()["selector"]["samples"])
    of, values = _FILE["methods"][method], dict(experiment.settings[setting])
    if method == "centralization":
        # All samples at one client, however they are divided: each round is a step on K of them.
        values = {"learning.local.batch_size": samples}
    values |= of.get("set", {})
    if "asks" in of:
        selector = {"kind": of["asks"], "cohort": max(1, round(samples / experiment.mean_size))}
        values |= {"learning.local.batch_size": 32, "learning.server": of["server"], "selector": selector}
    return values | ({"rounds.weights": "uniform"} if of.get("asks") == "uniform" else {})
