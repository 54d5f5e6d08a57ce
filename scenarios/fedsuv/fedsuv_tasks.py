"""FedSUV's five tasks, its methods, and what Tables 2 and 3 of the paper report."""

from collections.abc import Mapping
from dataclasses import dataclass
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
    """A row of Table 1."""

    title: str
    rounds: Mapping[Aggregation, tuple[int, ...]]
    accuracy: Mapping[Aggregation, tuple[float, ...]]


TASKS: Final = {
    "cifar10_resnet18": Task(
        "ResNet-18 on CIFAR-10",
        {"averaging": (500, 580, 660, 550, 430), "yogi": (380, 290, 160, 290, 130)},
        {"averaging": (47.82, 48.69, 46.69, 48.05, 49.22), "yogi": (54.96, 55.19, 59.51, 54.80, 60.82)},
    ),
    "cifar10_mobilenet": Task(
        "MobileNetV2 on CIFAR-10",
        {"averaging": (880, 500, 440, 410, 390), "yogi": (310, 430, 300, 270, 170)},
        {"averaging": (28.50, 30.90, 31.01, 31.12, 33.94), "yogi": (36.73, 35.25, 35.75, 36.06, 39.43)},
    ),
    "cifar100_shufflenet": Task(
        "ShuffleNetV2 on CIFAR-100",
        {"averaging": (460, 220, 510, 320, 130), "yogi": (240, 320, 330, 220, 170)},
        {"averaging": (18.99, 24.75, 19.32, 22.00, 24.79), "yogi": (22.42, 19.13, 22.49, 22.08, 23.51)},
    ),
    "femnist_resnet18": Task(
        "ResNet-18 on FEMNIST",
        {"averaging": (200, 210, 270, 240, 200), "yogi": (1000, 600, 720, 590, 570)},
        {"averaging": (77.23, 76.06, 76.70, 77.66, 78.04), "yogi": (68.87, 72.87, 71.27, 73.60, 73.01)},
    ),
    "speech_resnet34": Task(
        "ResNet-34 on Speech Commands",
        {"averaging": (570, 500, 320, 310, 270), "yogi": (600, 530, 720, 570, 450)},
        {"averaging": (56.88, 60.19, 60.12, 58.88, 60.28), "yogi": (55.71, 53.64, 54.14, 54.90, 56.00)},
    ),
}
"""Tasks by the name of their file; numbers in the order of `REPORTED`."""


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
