"""The four experiments of PAUSE's section V: a scenario each, the methods of its figures, and what is reported of them.

Reported numbers are those of the authors' run logs at the end of a run (one seed each), as the paper gives curves only.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fedsim import Scenario
from fedsim.history.tables import X

HERE: Final = Path(__file__).parent


@dataclass(frozen=True)
class Method:
    label: str
    changes: Mapping[str, Any]
    leaks: bool = True
    in_paper: bool = True


@dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    file: str
    accuracy: int
    leakage: int  # as accuracy, the number of a figure
    leakage_x: X
    at_s: tuple[float, ...]
    iterations: int
    exact_in_paper: bool
    random_in_paper: bool
    logs: Mapping[str, tuple[float, float]]
    """Accuracy in per cent and seconds at the end, by method."""

    @property
    def base(self) -> Scenario:
        """The scenario of the file, whose seed is the authors'."""
        return Scenario.load(HERE / self.file)

    @property
    def target_accuracy(self) -> float:
        """Accuracy whose time the table states."""
        return self.base.results.target_accuracy

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods; the authors' logs have kappa 70, and the paper says 30 of large crowds."""
        annealed = {"selector.kind": "sa-pause", "selector.iterations": self.iterations}
        exact = "PAUSE" if self.exact_in_paper else "PAUSE, exact arg max"
        return {
            "all-open": Method("all users, no privacy", {"selector.kind": "all", "privacy": "none"}, leaks=False),
            "all": Method("all users", {"selector.kind": "all"}),
            "pause": Method(exact, {}, in_paper=self.exact_in_paper),
            "sa-pause": Method("SA-PAUSE", {**annealed, "selector.kappa": 70.0}),
            "sa-pause-30": Method("SA-PAUSE, kappa 30", {**annealed, "selector.kappa": 30.0}, in_paper=False),
            "random": Method("random", {"selector.kind": "uniform"}, in_paper=self.random_in_paper),
            "clustered": Method("clustered sampling", {"selector.kind": "clustered-size"}),
            "fastest": Method("fastest in expectation", {"selector.kind": "fastest"}),
        }


EXPERIMENTS: Final = tuple(
    Experiment(name, **of)
    for name, of in tomllib.loads((HERE / "experiments.toml").read_text(encoding="utf-8")).items()
)
FIGURES: Final = {number: one for one in EXPERIMENTS for number in (one.accuracy, one.leakage)}
"""Experiments by the numbers of the paper's figures."""
