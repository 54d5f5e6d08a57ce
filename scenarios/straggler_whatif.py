"""What helps against stragglers? Accuracy against seconds under eight rules for closing a round, on one crowd.

    python scenarios/straggler_whatif.py [--seconds S] [--seeds N] [--out FOLDER]

runs the study of `straggler_whatif.toml`; times to a target are medians over the seeds, other figures means.
"""

import numpy as np
from matplotlib.figure import Figure
from study_scripts import Column, Runs, panels, run, sizes, study_of, summary, times_to, written

from fedsim import History
from fedsim.history.accounting import spent

SMOOTHED_S = 2.0  # simulated seconds that means of accuracy reach back, in curves and at the end
COLOURS = ("#000000", "#56B4E9", "#0072B2", "#004466", "#E69F00", "#CC79A7", "#D55E00", "#009E73")
FATES = {"used": "#009E73", "stale-used": "#A6D854", "wasted-late": "#D55E00", "wasted-dropped": "#000000"}
FATES["wasted-unmerged"] = "#E69F00"


def window(history: History) -> int:
    """Return how many evaluations after rounds there are in the time that means reach back."""
    lasted_s = float(history.column("rounds", "end_s")[-1])
    return max(1, round(SMOOTHED_S * np.count_nonzero(history.column("evaluations", "round")) / lasted_s))


COLUMNS: dict[str, Column] = {
    "mean round s": ("mean_round_s", ".3f", np.mean),
    "acc, last 2 s": (lambda one: one.curve(smoothing=window(one))[1][-1], ".1%", np.mean),
    "time wasted": (lambda one: spent(one).wasted_time, ".1%", np.mean),
    "bits wasted": (lambda one: spent(one).wasted_bits, ".1%", np.mean),
    **times_to((0.8, 0.9), ".1f"),
}


def main() -> None:
    given = sizes(__file__, __doc__, seconds=120.0, seeds=3)
    runs = run(study_of(__file__, given.seeds, rounds__until_s=given.seconds), given.out)
    summary(runs, COLUMNS, "rule")
    drawn, (axes,) = panels(
        1, (8.0, 4.5), xlabel="simulated time (s)", ylabel=f"test accuracy, mean over {SMOOTHED_S:g} s"
    )
    for (rule, (one, *_)), colour in zip(runs.items(), COLOURS, strict=True):
        axes.plot(*one.curve(smoothing=window(one)), label=rule, color=colour, linewidth=1.5)
    axes.legend(frameon=False, loc="lower right")
    written({"accuracy.png": drawn, "waste.png": waste(runs)}, given.out)


def waste(runs: Runs) -> Figure:
    """Return bars of what became of the clients' time under each rule, means over the seeds."""
    figure, (axes,) = panels(1, (8.0, 3.5), xlim=(0, 1), xlabel="share of the clients' time")
    left = np.zeros(len(runs))
    for at, (fate, colour) in enumerate(FATES.items()):
        share = np.mean([[one.by_fate()["time_share"][at].as_py() for one in of] for of in runs.values()], axis=1)
        axes.barh(list(runs), share, left=left, color=colour, label=fate)
        left += share
    axes.invert_yaxis()
    figure.legend(frameon=False, loc="outside upper center", ncols=len(FATES), fontsize=8)
    return figure


if __name__ == "__main__":
    main()
