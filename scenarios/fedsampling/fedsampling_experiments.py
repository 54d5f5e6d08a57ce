"""FedSampling's experiments: their methods and settings, and what the paper reports.

The paper's code has no baselines. Here one asks as many clients as have K samples on average, by the mean size that the
partition aims at. Each does one epoch in batches of 32 with the learning rate of FedSampling, and the server takes the
plain mean of their updates (section 1 of the paper: two samples of one client count a half each).
"""

import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from paper_runs.runs import Values

from fedsim import Scenario

HERE: Final = Path(__file__).parent
FILE: Final[dict[str, Any]] = tomllib.loads((HERE / "methods.toml").read_text(encoding="utf-8"))
LABELS: Final[dict[str, str]] = {name: of["label"] for name, of in FILE["methods"].items()}


@dataclass(frozen=True)
class Experiment:
    title: str
    methods: tuple[str, ...] = tuple(name for name in LABELS if "-weighted" not in name and name != "fixed-ratio")
    settings: dict[str, Values] = field(default_factory=lambda: {"all": {}})
    mean_size: float = 2.0
    drawn: str = "bars"
    axis: str = ""
    stand_in: str = "Fashion-MNIST for MIND"


EXPERIMENTS: Final = {name: Experiment(**of) for name, of in FILE["experiments"].items()}


def scenario_of(name: str, method: str, setting: str = "all", seed: int = 0, data: str = "here") -> Scenario:
    base = base_of(name, data)
    return base.replace({"seed": seed, **values_of(name, method, setting, base)})


def base_of(name: str, data: str = "here", values: Values | None = None) -> Scenario:
    base = Scenario.load(HERE / f"{name}.toml")
    changes = [FILE["data"][one] for one in (*FILE["like"].get(data, ()), data)]
    return base.replace({path: value for one in (*changes, values or {}) for path, value in one.items()})


def values_of(name: str, method: str, setting: str, base: Scenario) -> dict[str, Any]:
    """Return what a setting and a method change: who takes part, and what the clients and the server do."""
    experiment, of, samples = EXPERIMENTS[name], FILE["methods"][method], int(base.describe()["selector"]["samples"])
    # Centralised training has all samples at one client, however they are divided: each round is a step on K of them.
    whole = {"learning.local.batch_size": samples}
    values = {**(whole if method == "centralization" else experiment.settings[setting]), **of.get("set", {})}
    if "asks" in of:
        selector = {"kind": of["asks"], "cohort": max(1, round(samples / experiment.mean_size))}
        values |= {"learning.local.batch_size": 32, "learning.server": of["server"], "selector": selector}
    return values
