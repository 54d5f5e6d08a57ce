"""FedSampling's experiments: their methods and settings, and what the paper reports.

The paper's code has no baselines. Here a baseline asks as many clients as have K samples on average, by the mean size
that the partition aims at. Each does one epoch in batches of 32 with the learning rate of FedSampling, and the server
takes the plain mean of their updates (section 1 of the paper: two samples of one client count a half each).
"""

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from fedsim import Scenario

HERE: Final = Path(__file__).parent
Changes = Mapping[str, Any]

_ADAPTIVE: Final = {"learning_rate": 0.01, "tau": 0.001}
RATIO: Final = 0.034
"""Of the naive method: about 2,048 of 60,000 samples."""
_FILE: Final[dict[str, Any]] = tomllib.loads((HERE / "methods.toml").read_text(encoding="utf-8"))
LABELS: Final[dict[str, str]] = _FILE["methods"]


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

_IMAGES: Final[dict[str, Any]] = {
    "learning.local.learning_rate": 0.05,
    "selector.samples": 2048,
    "crowd.clients": 30_000,
    "rounds.count": 600,
    "learning.data": "fashion-mnist",
    "learning.model": {"kind": "mlp", "hidden": [64]},
}
_NEWS: Final = {"kind": "mind", "folder": "MINDsmall_train", "glove": "glove.840B.300d.txt"}
_TEXTS: Final[dict[str, Any]] = {**_IMAGES, "learning.data": _NEWS, "learning.model": "text-cnn"}
_NARROW: Final = {"kind": "text-attention", "embedding": 32, "heads": 4, "head_width": 16, "hidden": 64, "pooling": 32}
"""As narrow as the Text-CNN of table1.toml."""
_TEXT_CNN: Final[dict[str, Changes]] = {
    "here": {},
    "mind": _TEXTS,
    **{
        name: {**_TEXTS, "learning.split": "natural", "learning.data": {"kind": "amazon-reviews", "name": full}}
        for name, full in (("toys", "Toys_and_Games_5"), ("beauty", "Beauty_5"))
    },
}
DATA: Final[dict[str, Changes]] = {
    **_TEXT_CNN,
    **{f"{name}-attention": {**of, "learning.model": "text-attention"} for name, of in _TEXT_CNN.items()},
    "here-attention": {"learning.model": _NARROW},
    "fashion": _IMAGES,
    "emnist": {"learning.data": "emnist", "learning.model": "resnet-18", "crowd.clients": 2326},
}
"""Other data than that of an experiment's file, ``"here"``: changes of the scenario."""

PAPER: Final[dict[str, dict[str, tuple[float, float]]]] = {}
"""Macro-F1 and accuracy of Table 1 in per cent, by data and method: of Text-CNN, and of the Transformer."""
with (HERE / "paper.csv").open(encoding="utf-8") as _file:
    for _row in csv.DictReader(_file):
        _numbers = float(_row["macro_f1"]), float(_row["accuracy"])
        PAPER.setdefault(_row["data"], {})[_row["method"]] = _numbers


def scenario_of(
    name: str, method: str, setting: str, seed: int, data: str = "here", values: Changes | None = None
) -> Scenario:
    base = base_of(name, data, values)
    return base.replace({"seed": seed, **values_of(name, method, setting, base)})


def base_of(name: str, data: str = "here", values: Changes | None = None) -> Scenario:
    """Return what all runs of an experiment have in common."""
    return Scenario.load(HERE / f"{name}.toml").replace({**DATA[data], **(values or {})})


def values_of(name: str, method: str, setting: str, base: Scenario) -> dict[str, Any]:
    """Return what a setting and a method change: who takes part, and what the clients and the server do."""
    experiment, samples = EXPERIMENTS[name], int(base.describe()["selector"]["samples"])
    values = dict(experiment.settings[setting])
    if method == "fedsampling":
        return values
    if method == "fixed-ratio":
        return {**values, "selector": {"kind": "fixed-ratio", "ratio": RATIO}, "rounds.weights": "uniform"}
    if method == "centralization":
        # All samples at one client: each round is a step on K of them.
        one = {"crowd.clients": 1, "learning.split": "equal", "selector": "all"}
        return {**values, **one, "learning.local.steps": 1, "learning.local.batch_size": samples}
    server, _, weighted = method.partition("-")
    steps = {} if server == "fedavg" else _ADAPTIVE
    values |= {"learning.local.batch_size": 32, "learning.server": {"kind": server, **steps}}
    cohort = max(1, round(samples / experiment.mean_size))
    if weighted:
        return {**values, "selector": {"kind": "weighted", "cohort": cohort}}
    return {**values, "selector": {"kind": "uniform", "cohort": cohort}, "rounds.weights": "uniform"}
