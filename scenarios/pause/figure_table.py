"""The table of an experiment of PAUSE: what is measured of a run, and its columns beside what the authors' logs say."""

import math
from typing import Any, Final

import numpy as np
from figure_experiments import Experiment
from paper_runs.runs import Column, Measured, mean
from study_scripts import number

from fedsim import History
from fedsim.studies.figures.bands import at_steps

SMOOTHING: Final = 10
"""Rounds over which the paper smooths accuracy."""


def to_target(experiment: Experiment) -> str:
    """Return the head of the column of seconds to the target."""
    return f"mean of {SMOOTHING} to {100 * experiment.base.results.target_accuracy:.0f} % s"


def measured(experiment: Experiment, history: History) -> Measured:
    """Return the columns and curves of a run: without learning no accuracy, without privacy no leakage."""
    found: dict[str, Any] = {"simulated s": number("simulated_s", history)}
    found["mean round s"] = number("mean_round_s", history)
    lasted = np.array([at_s for at_s in experiment.at_s if at_s <= found["simulated s"]])
    if history.evaluations.num_rows:
        at, accuracy = found["accuracy"] = history.curve("time", "accuracy", SMOOTHING)
        found["last 10 rounds %"] = 100.0 * float(accuracy[-1])
        reached = np.flatnonzero(accuracy >= experiment.base.results.target_accuracy)
        found[to_target(experiment)] = float(at[reached[0]]) if reached.size else math.inf
        found |= {f"at {at_s:.0f} s %": 100.0 * at_steps((at, accuracy), at_s) for at_s in lasted}
    if history.budget is not None:
        found["leakage"] = history.curve(experiment.leakage_x, "leakage")
        found["largest leakage"] = number("largest_leakage", history)
        leaked = history.curve("time", "leakage")
        found |= {f"leaked at {at_s:.0f} s": at_steps(leaked, at_s) for at_s in lasted}
    return found


def columns(experiment: Experiment) -> list[Column]:
    no_log, said = ("-", "-"), dict.fromkeys(experiment.not_in_paper, " (not in the paper's figure)")
    logs = {method: (f"{last:.1f}", f"{end_s:.0f}") for method, (last, end_s) in experiment.logs.items()}
    return [
        ("method", lambda row: experiment.label(row.method) + said.get(row.method, "")),
        mean("last 10 rounds %", 1),
        ("log %", lambda row: logs.get(row.method, no_log)[0]),
        *(mean(f"at {at_s:.0f} s %", 1) for at_s in experiment.at_s),
        mean(to_target(experiment), 0),
        mean("simulated s", 0),
        ("log s", lambda row: logs.get(row.method, no_log)[1]),
        mean("mean round s", 3),
        *(mean(f"leaked at {at_s:.0f} s", 1) for at_s in experiment.at_s),
        mean("largest leakage", 1),
    ]
