"""FedSampling's experiments: their methods and settings, and what the paper reports.

The paper's code has no baselines. Here a baseline asks as many clients as have K samples on average, by the mean size
that the partition aims at. Each does one epoch in batches of 32 with the learning rate of FedSampling, and the server
takes the plain mean of their updates (section 1 of the paper: two samples of one client count a half each).
"""

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
SERVERS: Final[dict[str, Changes]] = {
    "fedavg": {"kind": "fedavg"},
    "fedyogi": {"kind": "fedyogi", **_ADAPTIVE},
    "fedadagrad": {"kind": "fedadagrad", **_ADAPTIVE},
    "fedadam": {"kind": "fedadam", **_ADAPTIVE},
}
LABELS: Final = {
    "centralization": "centralised",
    "fedavg": "FedAvg",
    "fedyogi": "FedYogi",
    "fedadagrad": "FedAdagrad",
    "fedadam": "FedAdam",
    **{
        f"{name}-weighted": f"{label}, weighted"
        for name, label in zip(SERVERS, ("FedAvg", "FedYogi", "FedAdagrad", "FedAdam"), strict=True)
    },
    "fixed-ratio": "naive, fixed ratio",
    "fedsampling": "FedSampling",
}
PLAIN: Final = ("centralization", *SERVERS, "fedsampling")
WEIGHTED: Final = (*PLAIN[:-1], *(f"{name}-weighted" for name in SERVERS), "fixed-ratio", "fedsampling")


@dataclass(frozen=True)
class Experiment:
    title: str
    methods: tuple[str, ...] = PLAIN
    settings: Mapping[str, Changes] = field(default_factory=lambda: {"all": {}})
    mean_size: float = 2.0
    drawn: Literal["bars", "lines", "curves"] = "bars"
    axis: str = ""
    stand_in: str = "Fashion-MNIST for MIND"
    """The data here, for those of the paper."""


EXPERIMENTS: Final = {
    "table1": Experiment("Table 1", stand_in="AG News for MIND"),
    "fig3": Experiment("Fig. 3: weighted sampling of clients", WEIGHTED),
    "fig4": Experiment(
        "Fig. 4: how unlike the sizes of clients are",
        settings={f"{sigma}": {"learning.split.sigma": float(sigma)} for sigma in (1, 2, 3, 4)},
        drawn="lines",
        axis="sigma",
    ),
    "fig5": Experiment(
        "Fig. 5: clients of one label each", mean_size=300.0, drawn="curves", stand_in="Fashion-MNIST for EMNIST"
    ),
    "fig6": Experiment(
        "Fig. 6: threshold M and epsilon of the answers about sizes",
        ("fedsampling",),
        {
            f"{epsilon}-m{threshold}": {"selector.threshold": threshold, "selector.epsilon": float(epsilon)}
            for threshold in (10, 100, 1000)
            for epsilon in (1, 3, 5)
        },
        drawn="lines",
        axis="epsilon",
    ),
}

_NEWS: Final = {"kind": "mind", "folder": "MINDsmall_train", "glove": "glove.840B.300d.txt"}
_USERS: Final[dict[str, Any]] = {"learning.split": "natural", "crowd.clients": 30_000}
_TEXTS: Final[dict[str, Any]] = {
    "learning.local.learning_rate": 0.05,
    "selector.samples": 2048,
    "crowd.clients": 30_000,
    "rounds.count": 600,
    "learning.model": "text-cnn",
}
DATA: Final[dict[str, Changes]] = {
    "here": {},
    "here-attention": {"learning.model": "text-attention"},
    "fashion": {
        **_TEXTS,
        "learning.data": "fashion-mnist",
        "learning.model": {"kind": "mlp", "hidden": [64]},
    },
    "mind": {**_TEXTS, "learning.data": _NEWS},
    "mind-attention": {**_TEXTS, "learning.data": _NEWS, "learning.model": "text-attention"},
    "toys": {**_TEXTS, **_USERS, "learning.data": {"kind": "amazon-reviews", "name": "Toys_and_Games_5"}},
    "beauty": {**_TEXTS, **_USERS, "learning.data": {"kind": "amazon-reviews", "name": "Beauty_5"}},
    **{
        f"{name}-attention": {
            **_TEXTS,
            **_USERS,
            "learning.data": {"kind": "amazon-reviews", "name": full},
            "learning.model": "text-attention",
        }
        for name, full in (("toys", "Toys_and_Games_5"), ("beauty", "Beauty_5"))
    },
    "emnist": {"learning.data": "emnist", "learning.model": "resnet-18", "crowd.clients": 2326},
}
"""Other data than that of an experiment's file, ``"here"``: changes of the scenario."""

PAPER: Final[dict[str, dict[str, tuple[float, ...]]]] = {
    "mind-attention": {
        "centralization": (53.73, 72.19),
        "fedavg": (50.46, 70.74),
        "fedyogi": (50.94, 70.29),
        "fedadagrad": (50.99, 70.65),
        "fedadam": (50.69, 70.83),
        "fedsampling": (53.43, 71.98),
    },
    "toys-attention": {
        "centralization": (41.86, 63.56),
        "fedavg": (38.68, 60.30),
        "fedyogi": (37.75, 61.44),
        "fedadagrad": (38.06, 59.69),
        "fedadam": (37.58, 60.59),
        "fedsampling": (41.63, 64.03),
    },
    "beauty-attention": {
        "centralization": (44.31, 62.92),
        "fedavg": (37.82, 60.41),
        "fedyogi": (38.10, 60.17),
        "fedadagrad": (38.59, 59.87),
        "fedadam": (38.44, 60.65),
        "fedsampling": (43.47, 62.67),
    },
    "mind": {
        "centralization": (51.52, 71.14),
        "fedavg": (48.11, 69.23),
        "fedyogi": (49.12, 68.92),
        "fedadagrad": (48.55, 67.74),
        "fedadam": (48.54, 68.22),
        "fedsampling": (51.33, 71.15),
    },
    "toys": {
        "centralization": (39.61, 63.71),
        "fedavg": (35.32, 61.63),
        "fedyogi": (35.62, 61.22),
        "fedadagrad": (34.69, 60.63),
        "fedadam": (35.27, 61.35),
        "fedsampling": (40.15, 63.41),
    },
    "beauty": {
        "centralization": (43.90, 62.20),
        "fedavg": (38.44, 60.75),
        "fedyogi": (38.77, 60.35),
        "fedadagrad": (37.20, 60.64),
        "fedadam": (39.09, 60.43),
        "fedsampling": (43.04, 62.96),
    },
}
"""Macro-F1 and accuracy of Table 1 in per cent, by data and method: of Text-CNN, and of the Transformer."""


def scenario_of(
    name: str, method: str, setting: str, seed: int, data: str = "here", values: Changes | None = None
) -> Scenario:
    base = base_of(name, data, values)
    return base.replace({"seed": seed, **values_of(name, method, setting, base)})


def base_of(name: str, data: str = "here", values: Changes | None = None) -> Scenario:
    """Return what all runs of an experiment have in common."""
    return Scenario.load(HERE / f"{name}.toml").replace({**DATA[data], **(values or {})})


def values_of(name: str, method: str, setting: str, base: Scenario) -> dict[str, Any]:
    """Return what a setting and a method change of an experiment's scenario."""
    experiment, samples = EXPERIMENTS[name], int(base.describe()["selector"]["samples"])
    return {**experiment.settings[setting], **_method(method, samples, max(1, round(samples / experiment.mean_size)))}


def _method(method: str, samples: int, clients: int) -> dict[str, Any]:
    """Return what a method changes: who takes part, and what the clients and the server do."""
    if method == "fedsampling":
        return {}
    if method == "centralization":
        # All samples at one client: each round is a step on K of them.
        return {
            "crowd.clients": 1,
            "learning.split": "equal",
            "learning.local.steps": 1,
            "learning.local.batch_size": samples,
            "selector": "all",
        }
    if method == "fixed-ratio":
        return {"selector": {"kind": "fixed-ratio", "ratio": RATIO}, "rounds.weights": "uniform"}
    server, _, weighted = method.partition("-")
    changes: dict[str, Any] = {"learning.local.batch_size": 32, "learning.server": dict(SERVERS[server])}
    if weighted:
        return {**changes, "selector": {"kind": "weighted", "cohort": clients}}
    return {**changes, "selector": {"kind": "uniform", "cohort": clients}, "rounds.weights": "uniform"}
