"""What helps against stragglers? Eight rules for closing a round, on one crowd with as many seconds.

    python scenarios/straggler_whatif.py [--seconds S] [--seeds N] [--out FOLDER]

runs the study of `straggler_whatif.toml` in 1.5 min; times to a target are medians over the seeds, other figures means.
"""

from pathlib import Path

import numpy as np
from study_scripts import Column, command, last_accuracy, run, study_of, summary, times_to

from fedsim import History
from fedsim.history.accounting import spent

LAST_S = 2.0  # simulated seconds of the last accuracy


def smoothed(history: History) -> float:
    """Return the mean of the accuracies of as many evaluations as there are in the last seconds."""
    lasted_s = float(history.column("rounds", "end_s")[-1])
    evaluations = np.count_nonzero(history.column("evaluations", "round"))
    return last_accuracy(history, max(1, round(LAST_S * evaluations / lasted_s)))


COLUMNS: dict[str, Column] = {
    "mean round s": ("mean_round_s", ".3f", np.mean),
    "acc, last 2 s": (smoothed, ".1%", np.mean),
    "time wasted": (lambda one: spent(one).wasted_time, ".1%", np.mean),
    "bits wasted": (lambda one: spent(one).wasted_bits, ".1%", np.mean),
    **times_to((0.8, 0.9), ".1f"),
}


def main(seconds: float = 120.0, seeds: int = 3, out: Path = Path("runs/straggler_whatif")) -> None:
    summary(run(study_of(__file__, seeds, rounds__until_s=seconds), out), COLUMNS, "rule")


if __name__ == "__main__":
    command(main, __doc__)
