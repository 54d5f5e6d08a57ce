"""PAUSE's experiments by `experiments.toml`: a scenario with two figures each, and the methods that they show."""

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from fedsim import Scenario
from fedsim.history.tables import X

HERE: Final = Path(__file__).parent
_FILE: Final[dict[str, Any]] = tomllib.loads((HERE / "experiments.toml").read_text(encoding="utf-8"))
LABELS: Final[dict[str, str]] = {name: of["label"] for name, of in _FILE["methods"].items()}


@dataclass(frozen=True)
class Experiment:
    """A scenario and the numbers of its two figures, that of accuracy and that of leakage."""

    name: str
    title: str
    file: str
    accuracy: int
    leakage: int
    leakage_x: X
    at_s: list[float]
    iterations: int
    not_in_paper: list[str]
    logs: Mapping[str, tuple[float, float]]

    @property
    def base(self) -> Scenario:
        """The scenario of the file, whose seed is the authors'."""
        return Scenario.load(HERE / self.file)

    @property
    def methods(self) -> dict[str, dict[str, Any]]:
        """What each method changes of the scenario."""
        annealed = {"selector.iterations": self.iterations}
        changes = {name: of["set"] for name, of in _FILE["methods"].items()}
        return {name: of | (annealed if "selector.kappa" in of else {}) for name, of in changes.items()}

    def label(self, method: str) -> str:
        return LABELS[method] + (", exact arg max" if method == "pause" and method in self.not_in_paper else "")


EXPERIMENTS: Final = tuple(Experiment(name, **of) for name, of in _FILE["figures"].items())
