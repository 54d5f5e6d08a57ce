"""What do smaller updates buy? Accuracy against seconds, and against bits sent up, for six ways to send an update.

    python scenarios/messages.py [--rounds N] [--seeds N] [--out FOLDER]

runs the study of `messages.toml` in a minute, and prints medians over the seeds.
"""

from functools import partial
from pathlib import Path

import numpy as np
from study_scripts import Column, command, last_accuracy, panels, run, study_of, summary, times_to, written

from fedsim import History

TARGETS = (0.8, 0.9, 0.95)


def sent_mbit(history: History) -> np.ndarray:
    """Return what all clients have sent up at each evaluation."""
    up_bits = history.column("participations", "uplink_bits")
    by_round = np.bincount(history.column("participations", "round"), up_bits)
    return np.asarray(np.cumsum(by_round)[history.column("evaluations", "round")] / 1e6)


def mbit_to(target: float, history: History) -> float:
    first = np.flatnonzero(history.column("evaluations", "accuracy") >= target)
    return float(sent_mbit(history)[first[0]]) if first.size else np.inf


COLUMNS: dict[str, Column] = {
    "bits of an update": (lambda one: one.column("participations", "uplink_bits").max(), ",.0f"),
    "mean round s": ("mean_round_s", ".2f"),
    "accuracy": (last_accuracy, ".1%"),
    **times_to(TARGETS),
    **{f"Mbit to {target:.0%}": (partial(mbit_to, target), ".3g") for target in TARGETS},
}


def main(rounds: int = 200, seeds: int = 3, out: Path = Path("runs/messages")) -> None:
    runs = run(study_of(__file__, seeds, rounds__count=rounds), out, executor="stacked")
    summary(runs, COLUMNS, "updates")
    figure, (left, right) = panels(2, (9.0, 3.8), xscale="log", ylabel="test accuracy")
    for way, (one, *_) in runs.items():
        left.plot(*one.curve(), label=way, linewidth=1.2)
        right.plot(sent_mbit(one), one.curve()[1], linewidth=1.2)
    left.set_xlabel("simulated time (s)")
    right.set_xlabel("sent up by all clients (Mbit)")
    figure.legend(loc="outside upper center", ncols=len(runs), frameon=False, fontsize=8)
    written({"messages.png": figure}, out)


if __name__ == "__main__":
    command(main, __doc__)
