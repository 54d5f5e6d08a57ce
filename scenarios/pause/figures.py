"""PAUSE's figures 2 to 9: all methods of a figure, its curves, and a table beside what the authors' logs say.

    python scenarios/pause/figures.py --figure 6 7 [--scale 0.1] [--seeds N] [--once NAME ...] [--methods NAME ...]
        [--set PATH=VALUE ...] [--repeat] [--workers N] [--executor KIND] [--data-dir DIR] [--out FOLDER]

Accuracy is smoothed over 10 rounds, as in the paper. ``--set learning=none`` gives the figures of leakage and all
columns of time in seconds. Else, seconds of one processor for a method with m users a round, and for each of the two
with all users: Figs. 6, 7 (--executor stacked) 30 and 500; Figs. 2, 3 (--executor sequential, as the rest) 1,150 and
5,100; Figs. 4, 5 1,500 and 6,400; Figs. 8, 9 960 and 10,400.
"""

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))

from paper_runs.command import changes, in_words, of_runs, publish
from paper_runs.curves import Curve, draw
from paper_runs.runs import Column, Found, Measured, Table, Values, first_at, made, mean, scaled

from fedsim import Scenario
from fedsim.history import History
from fedsim.history.tables import X
from fedsim.studies.figures.bands import at_steps

HERE: Final = Path(__file__).parent
SMOOTHING: Final = 10
_FILE: Final[dict[str, Any]] = tomllib.loads((HERE / "experiments.toml").read_text(encoding="utf-8"))
LABELS: Final[dict[str, str]] = {name: of["label"] for name, of in _FILE["methods"].items()}


@dataclass(frozen=True)
class Experiment:
    """A scenario and two figures, that of accuracy and that of leakage."""

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
    def methods(self) -> dict[str, Values]:
        """What each method changes of the scenario."""
        found = {name: dict(of["set"]) for name, of in _FILE["methods"].items()}
        for name in ("sa-pause", "sa-pause-30"):
            found[name]["selector.iterations"] = self.iterations
        return found

    def label(self, method: str) -> str:
        return LABELS[method] + (", exact arg max" if method == "pause" and method in self.not_in_paper else "")

    @property
    def to_target(self) -> str:
        """The head of the column of seconds to the target."""
        return f"mean of {SMOOTHING} to {100 * self.base.results.target_accuracy:.0f} % s"

    def measure(self, history: History) -> Measured:
        """Return the columns and curves of a run: without learning no accuracy, without privacy no leakage."""
        duration_s, end_s = (history.column("rounds", name) for name in ("duration_s", "end_s"))
        found: dict[str, Any] = {"simulated s": float(end_s[-1]), "mean round s": float(duration_s.mean())}
        if history.evaluations.num_rows:
            curve = found["accuracy"] = history.curve("time", "accuracy", SMOOTHING)
            found["last 10 rounds %"] = 100.0 * float(curve[1][-1])
            found[self.to_target] = first_at(*curve, self.base.results.target_accuracy)
            found |= self._at(curve, "at {} s %", 100.0)
        if history.budget is not None:
            found["leakage"] = history.curve(self.leakage_x, "leakage")
            curve = history.curve("time", "leakage")
            found["largest leakage"] = float(curve[1][-1])
            found |= self._at(curve, "leaked at {} s", 1.0)
        return found

    def _at(self, curve: Curve, head: str, factor: float) -> dict[str, float]:
        """Return the values of a curve at the table's instants, as far as it lasted."""
        lasted = [at_s for at_s in self.at_s if at_s <= curve[0][-1]]
        values = factor * at_steps(curve, np.array(lasted))
        return {head.format(f"{at_s:.0f}"): float(value) for at_s, value in zip(lasted, values, strict=True)}

    def columns(self) -> list[Column]:
        def name(method: str) -> str:
            return self.label(method) + (" (not in the paper's figure)" if method in self.not_in_paper else "")

        def log(method: str, at: int, digits: int) -> str:
            return f"{self.logs[method][at]:.{digits}f}" if method in self.logs else "-"

        return [
            ("method", lambda row: name(row.method)),
            mean("last 10 rounds %", 1),
            ("log %", lambda row: log(row.method, 0, 1)),
            *(mean(f"at {at_s:.0f} s %", 1) for at_s in self.at_s),
            mean(self.to_target, 0),
            mean("simulated s", 0),
            ("log s", lambda row: log(row.method, 1, 0)),
            mean("mean round s", 3),
            *(mean(f"leaked at {at_s:.0f} s", 1) for at_s in self.at_s),
            mean("largest leakage", 1),
        ]

    def figure(self, number: int, found: Found) -> Figure | None:
        """Return one of the paper's figures; None without anything to draw."""
        leaks = number == self.leakage
        what, x = ("leakage", self.leakage_x) if leaks else ("accuracy", "time")
        curves = {
            self.label(method): [run[what] for run in found.get(method, ()) if what in run] for method in self.methods
        }
        if not any(curves.values()):
            return None
        labels = (
            "global round" if x == "round" else "latency, simulated (s)",
            "largest leakage of a user (epsilon)" if leaks else f"test accuracy, mean of {SMOOTHING} rounds",
        )
        target = None if leaks else self.base.results.target_accuracy
        title, dashed = f"PAUSE, Fig. {number}: {self.title}", [self.label(method) for method in self.not_in_paper]
        return draw(curves, labels, title, target, dashed)


EXPERIMENTS: Final = tuple(Experiment(name, **of) for name, of in _FILE["figures"].items())
FIGURES: Final = {number: one for one in EXPERIMENTS for number in (one.accuracy, one.leakage)}
"""Experiments by the numbers of the paper's figures."""


def main() -> None:
    asked = of_runs(
        __doc__, "runs/pause", LABELS, figure=dict.fromkeys(sorted(FIGURES), True), once=dict.fromkeys(LABELS, False)
    ).parse_args()
    values, parts = changes(asked), []
    of_all = {path: value for path, value in values.items() if not path.startswith("selector.")}
    of_methods = {path: value for path, value in values.items() if path != "rounds.count"}
    for one in (one for one in EXPERIMENTS if {one.accuracy, one.leakage} & set(asked.figure)):
        table = Table(
            one.name,
            f"Fig. {one.accuracy} and {one.leakage}: {one.title}",
            scaled(one.base.replace(of_all), asked.scale),
            {name: {**of, **of_methods} for name, of in one.methods.items() if name in asked.methods},
            one.measure,
            one.columns(),
            {f"fig{n}.png": partial(one.figure, n) for n in (one.accuracy, one.leakage) if n in asked.figure},
        )
        parts.append(made(table, asked, once=asked.once))
    publish("scenarios/pause/figures.py", parts, asked)


if __name__ == "__main__":
    in_words(main)
