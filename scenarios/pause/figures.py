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

from paper_runs.command import in_words, of_runs, publish
from paper_runs.curves import draw
from paper_runs.runs import Column, Found, Measured, Table, Values, first_at, made, mean, scaled
from study_scripts import number

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
        annealed = {"selector.iterations": self.iterations}
        return {
            name: of["set"] | (annealed if "selector.kappa" in of["set"] else {})
            for name, of in _FILE["methods"].items()
        }

    def label(self, method: str) -> str:
        return LABELS[method] + (", exact arg max" if method == "pause" and method in self.not_in_paper else "")

    @property
    def target(self) -> float:
        return self.base.results.target_accuracy

    @property
    def to_target(self) -> str:
        """The head of the column of seconds to the target."""
        return f"mean of {SMOOTHING} to {100 * self.target:.0f} % s"

    def measure(self, history: History) -> Measured:
        """Return the columns and curves of a run: without learning no accuracy, without privacy no leakage."""
        found: dict[str, Any] = {"simulated s": number("simulated_s", history)}
        found["mean round s"] = number("mean_round_s", history)
        lasted = np.array([at_s for at_s in self.at_s if at_s <= found["simulated s"]])
        if history.evaluations.num_rows:
            curve = found["accuracy"] = history.curve("time", "accuracy", SMOOTHING)
            found |= {"last 10 rounds %": 100.0 * float(curve[1][-1]), self.to_target: first_at(*curve, self.target)}
            found |= dict(zip(self.heads("at {:.0f} s %"), 100.0 * at_steps(curve, lasted), strict=False))
        if history.budget is not None:
            found["leakage"] = history.curve(self.leakage_x, "leakage")
            found["largest leakage"] = number("largest_leakage", history)
            leaked = at_steps(history.curve("time", "leakage"), lasted)
            found |= dict(zip(self.heads("leaked at {:.0f} s"), leaked, strict=False))
        return found

    def heads(self, head: str) -> list[str]:
        """Return the heads of the columns at the table's instants."""
        return [head.format(at_s) for at_s in self.at_s]

    def columns(self) -> list[Column]:
        def name(method: str) -> str:
            return self.label(method) + (" (not in the paper's figure)" if method in self.not_in_paper else "")

        def log(method: str, at: int, digits: int) -> str:
            return f"{self.logs[method][at]:.{digits}f}" if method in self.logs else "-"

        return [
            ("method", lambda row: name(row.method)),
            mean("last 10 rounds %", 1),
            ("log %", lambda row: log(row.method, 0, 1)),
            *(mean(head, 1) for head in self.heads("at {:.0f} s %")),
            mean(self.to_target, 0),
            mean("simulated s", 0),
            ("log s", lambda row: log(row.method, 1, 0)),
            mean("mean round s", 3),
            *(mean(head, 1) for head in self.heads("leaked at {:.0f} s")),
            mean("largest leakage", 1),
        ]

    def figure(self, which: int, found: Found) -> Figure | None:
        """Return one of the paper's figures; None without anything to draw."""
        what, x, y = "accuracy", "time", f"test accuracy, mean of {SMOOTHING} rounds"
        if which == self.leakage:
            what, x, y = "leakage", self.leakage_x, "largest leakage of a user (epsilon)"
        curves = {self.label(one): [run[what] for run in found.get(one, ()) if what in run] for one in self.methods}
        if not any(curves.values()):
            return None
        labels = "global round" if x == "round" else "latency, simulated (s)", y
        title, dashed = f"PAUSE, Fig. {which}: {self.title}", [self.label(method) for method in self.not_in_paper]
        return draw(curves, labels, title, self.target if what == "accuracy" else None, dashed)


EXPERIMENTS: Final = tuple(Experiment(name, **of) for name, of in _FILE["figures"].items())


def main() -> None:
    figures = {number: True for one in EXPERIMENTS for number in (one.accuracy, one.leakage)}
    asked = of_runs(__doc__, "runs/pause", LABELS, figure=figures, once=dict.fromkeys(LABELS, False)).parse_args()
    of_all = {path: value for path, value in asked.set if not path.startswith("selector.")}
    of_methods = {path: value for path, value in asked.set if path != "rounds.count"}
    parts = []
    for one in EXPERIMENTS:
        if numbers := [number for number in (one.accuracy, one.leakage) if number in asked.figure]:
            table = Table(
                one.name,
                f"Fig. {one.accuracy} and {one.leakage}: {one.title}",
                scaled(one.base.replace(of_all), asked.scale),
                {name: {**of, **of_methods} for name, of in one.methods.items() if name in asked.methods},
                one.measure,
                one.columns(),
                {f"fig{number}.png": partial(one.figure, number) for number in numbers},
            )
            parts.append(made(table, asked, once=asked.once))
    publish("scenarios/pause/figures.py", parts, asked)


if __name__ == "__main__":
    in_words(main)
